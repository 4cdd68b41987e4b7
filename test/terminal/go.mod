module github.com/fastlabel/fastlabel/test/terminal

go 1.26.0

require github.com/fastlabel/fastlabel v0.0.0

require golang.org/x/sys v0.49.0 // indirect

replace github.com/fastlabel/fastlabel => ../..
