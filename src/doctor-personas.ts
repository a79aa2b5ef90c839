/** What the files of personas say that cannot be used: of the library, and of every chat. */
import { join } from 'node:path';
import type { Config } from './config.js';
import { namesIn } from './core/file-access.js';
import type { Log } from './core/log.js';
import { isChatId } from './groups/paths.js';
import { personaReader } from './groups/personas.js';
import { modelsFor } from './settings.js';

const MOST_TOLD = 50;

/** Sentences, each behind its file; `personas`: how many there are. */
export async function personaFindings(
  config: Pick<Config, 'groupsDir' | 'model'>,
  log: Log,
): Promise<{ personas: number; findings: string[] }> {
  const { groupsDir } = config;
  const reader = personaReader(groupsDir, log, modelsFor(config).models ?? null);
  const faults = new Set<string>();
  let personas = 0;
  const chats = (await namesIn(join(groupsDir))).filter(isChatId).sort();
  for (const chat of chats) {
    for (const persona of await reader.list(chat)) {
      personas++;
      for (const fault of persona.faults ?? []) faults.add(fault);
    }
  }
  for (const id of await reader.library()) {
    for (const fault of (await reader.asInLibrary(id)).faults ?? []) faults.add(fault);
  }
  const findings = [...faults].sort();
  const more = findings.length - MOST_TOLD;
  return {
    personas,
    findings: [...findings.slice(0, MOST_TOLD), ...(more > 0 ? [`… and ${more} more`] : [])],
  };
}
