// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// exitFailed is exit_group(1). It is called by the kernel, on any stack.
TEXT exitFailed<>(SB),NOSPLIT|NOFRAME,$0
	MOVD $1, R0
	MOVD $94, R8
	SVC
	BRK

// func exitHandler() uintptr
TEXT ·exitHandler(SB),NOSPLIT,$0-8
	MOVD $exitFailed<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
