/**
 * What a task may put into the environment of its commands: names that a shell takes, and none by which whoever sets it
 * decides how programs are found or loaded, which would act on the sandbox itself.
 */

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,199}$/;
const KEPT =
  /^(PATH|HOME|IFS|ENV|SHELLOPTS|BASHOPTS|BASH_.*|PS4|PROMPT_COMMAND|LD_.*|DYLD_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NODE_OPTIONS|COTERIE_.*)$/i;
/** The system takes no longer string, with its name. */
const LONGEST = 100_000;
const MOST_BYTES = 1_000_000;

/** `refused`: the names of those that are left out. */
export function commandEnv(given: Readonly<Record<string, string>>): {
  env: Record<string, string>;
  refused: string[];
} {
  const env: Record<string, string> = {};
  const refused: string[] = [];
  let bytes = 0;
  for (const [name, value] of Object.entries(given)) {
    const size = Buffer.byteLength(value);
    const isPlain = NAME.test(name) && !KEPT.test(name) && !value.includes('\0');
    if (!isPlain || size > LONGEST || bytes + size > MOST_BYTES) {
      refused.push(name);
      continue;
    }
    bytes += size;
    env[name] = value;
  }
  return { env, refused };
}
