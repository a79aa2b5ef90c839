/**
 * Names of archive files: `2026-11-22T10-15-00-luna.md`, local time and persona; the second of the same moment is
 * `2026-11-22T10-15-00_2-luna.md`. Persona ids contain no underscore, so every name can be parsed.
 */
import type { Zone } from '../core/dates.js';
import type { PersonaId } from '../core/ids.js';
import { composed } from '../core/names-on-disk.js';
import { isPersonaId } from './slug.js';

export interface ArchiveName {
  time: string;
  /** The number among those of the same moment. */
  number: number;
  personaId: PersonaId;
}

export function nameTime(zone: Zone, at: number): string {
  const seconds = new Date(at).toISOString().slice(17, 19);
  return `${zone.time(at).replace(' ', 'T').replace(':', '-')}-${seconds}`;
}

export function archiveName({ time, number, personaId }: ArchiveName): string {
  return `${time}${number === 1 ? '' : `_${number}`}-${personaId}.md`;
}

/** null for any other name, including one that would lead out of the folder. */
export function parseArchiveName(file: string): ArchiveName | null {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(?:_([1-9]\d{0,8}))?-(.+)\.md$/u.exec(composed(file));
  const [, time, number = '1', personaId] = parts ?? [];
  if (time === undefined || personaId === undefined || !isPersonaId(personaId)) return null;
  const name = { time, number: Number(number), personaId };
  return archiveName(name) === composed(file) ? name : null;
}

export function oldestFirst(a: ArchiveName, b: ArchiveName): number {
  if (a.time !== b.time) return a.time < b.time ? -1 : 1;
  return a.number - b.number;
}
