module github.com/fastlabel/fastlabel/test/selinuxvm

go 1.26.0

replace github.com/fastlabel/fastlabel => ../..

require (
	github.com/fastlabel/fastlabel v0.0.0-00010101000000-000000000000
	github.com/opencontainers/selinux v1.15.1
	golang.org/x/sys v0.49.0
)

require github.com/cyphar/filepath-securejoin v0.5.1 // indirect
