module github.com/fastlabel/fastlabel/deploy/man

go 1.25.0

require (
	github.com/spf13/cobra v1.9.1
	github.com/spf13/pflag v1.0.10
)

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
