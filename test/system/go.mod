module github.com/fastlabel/fastlabel/test/system

go 1.26.0

replace github.com/fastlabel/fastlabel => ../..

require (
	github.com/fastlabel/fastlabel v0.0.0
	github.com/hanwen/go-fuse/v2 v2.12.1
	github.com/opencontainers/selinux v1.15.1
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
	golang.org/x/sys v0.49.0
)

require (
	github.com/cyphar/filepath-securejoin v0.5.1 // indirect
	golang.org/x/text v0.14.0 // indirect
)
