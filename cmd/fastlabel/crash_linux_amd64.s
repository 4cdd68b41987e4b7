// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// exitFailed is exit_group(1). It is called by the kernel, on any stack.
TEXT exitFailed<>(SB),NOSPLIT|NOFRAME,$0
	MOVL $1, DI
	MOVL $231, AX
	SYSCALL
	INT  $3

// func exitHandler() uintptr
TEXT ·exitHandler(SB),NOSPLIT,$0-8
	LEAQ exitFailed<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
