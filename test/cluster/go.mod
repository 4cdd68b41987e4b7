module github.com/fastlabel/fastlabel/test/cluster

go 1.26.0

replace (
	github.com/fastlabel/fastlabel => ../..
	github.com/fastlabel/fastlabel/test/selinuxvm => ../selinuxvm
)

require github.com/fastlabel/fastlabel/test/selinuxvm v0.0.0-00010101000000-000000000000
