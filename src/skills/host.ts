/** What a skill's conditions are about: the system that this runs on, its programs, and our environment. */
import { statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Conditions } from './bundle.js';

export interface Host {
  platform: string;
  /** Whether there is a program of this name that can be run. */
  has(program: string): boolean;
  /** Whether this variable of the environment is set to something. */
  isSet(variable: string): boolean;
}

export function systemHost(env = process.env, platform: string = process.platform): Host {
  const folders = (env.PATH ?? '').split(delimiter).filter(isAbsolute);
  const endings = platform === 'win32' ? ['.exe', '.cmd', '.bat', ''] : [''];
  return {
    platform,
    isSet: (variable) => (env[variable] ?? '') !== '',
    has: (program) =>
      folders.some((folder) =>
        endings.some((ending) => {
          // By far quicker than to be told of each that is not there: it is asked for every answer.
          const found = statSync(join(folder, program + ending), { throwIfNoEntry: false });
          return found?.isFile() === true && (platform === 'win32' || (found.mode & 0o111) !== 0);
        }),
      ),
  };
}

/** Why a skill cannot be used here: a sentence's end for an operator; null: it can. */
export function unmet(
  { platforms, programs, anyPrograms, variables }: Conditions,
  { platform, has, isSet }: Host,
): string | null {
  if (platforms !== null && !platforms.includes(platform)) {
    return `it is for ${platforms.join(', ') || 'no system at all'}, and this is ${platform}`;
  }
  const missing = [...new Set(programs)].filter((program) => !has(program));
  if (missing.length > 0) return `it needs ${missing.join(', ')}, which is not installed here`;
  for (const some of anyPrograms) {
    if (!some.some(has)) return `it needs one of ${some.join(', ')}, and none is installed here`;
  }
  const unset = [...new Set(variables)].filter((variable) => !isSet(variable));
  if (unset.length > 0) return `it needs ${unset.join(', ')} in the environment, which is not set`;
  return null;
}
