// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"io"

	"github.com/fastlabel/fastlabel/cmd/fastlabel/internal/words"
)

// ReadAtMost reads all of r, and refuses what is longer than most.
func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("larger than %s bytes", words.Thousands(most))
	}
	return text, err
}
