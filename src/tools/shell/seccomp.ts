/**
 * System calls forbidden in the sandbox, as a filter for bubblewrap (seccomp(2), classic BPF): System V
 * memory and messages (`shmget`, `msgget`), which belong to no process, so that no limit covers them.
 */

/** `AUDIT_ARCH_…` of linux/audit.h, and these calls' numbers there; 117 is `ipc`, which has them all. */
const FORBIDDEN: readonly { arch: number; calls: readonly number[] }[] = [
  { arch: 0xc000003e, calls: [29, 68] }, // x86_64
  { arch: 0x40000003, calls: [117, 395, 399] }, // i386
  { arch: 0xc00000b7, calls: [186, 194] }, // aarch64
  { arch: 0x40000028, calls: [303, 307] }, // arm
  { arch: 0xc00000f3, calls: [186, 194] }, // riscv64
  { arch: 0xc0000015, calls: [117, 395, 399] }, // ppc64le
  { arch: 0x80000016, calls: [117, 395, 399] }, // s390x
];

const LOAD = 0x20;
const AND = 0x54;
const IF_EQUAL = 0x15;
const RETURN = 0x06;
const CALL_AT = 0;
const ARCH_AT = 4;
/** Clears the mark of x32, x86_64's calls with narrow pointers. */
const WITHOUT_X32 = 0xbfffffff;
const ALLOW = 0x7fff0000;
/** Fails with ENOSYS, as in a kernel without the call: programs that can do without, do. */
const REFUSE = 0x00050000 | 38;

/** In the kernel's form: 8 bytes per instruction, native byte order. */
export function forbiddenCalls(): Buffer {
  const program = [
    [LOAD, 0, 0, ARCH_AT],
    ...FORBIDDEN.flatMap(({ arch, calls }) => [
      [IF_EQUAL, 0, calls.length + 4, arch],
      [LOAD, 0, 0, CALL_AT],
      [AND, 0, 0, WITHOUT_X32],
      ...calls.map((call, n) => [IF_EQUAL, calls.length - n, 0, call]),
      [RETURN, 0, 0, ALLOW],
      [RETURN, 0, 0, REFUSE],
    ]),
    [RETURN, 0, 0, ALLOW],
  ];
  return Buffer.concat(
    program.map(([code = 0, then = 0, otherwise = 0, value = 0]) =>
      Buffer.concat([
        Buffer.from(Uint16Array.of(code).buffer),
        Buffer.of(then, otherwise),
        Buffer.from(Uint32Array.of(value).buffer),
      ]),
    ),
  );
}
