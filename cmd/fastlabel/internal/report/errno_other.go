// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package report

func errnoName(error) string { return "" }
