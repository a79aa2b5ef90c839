/** Splits the memory that a prompt contained into lines, each with its file and tier. Pure. */
import type { PersonaId } from '../../core/ids.js';
import type { Tier, Version } from '../../core/memory.js';
import type { PromptMemory } from '../../core/memory-history.js';

export interface RememberedLine {
  /** As in `Version`. */
  file: string;
  /** null in the daily log, and for text that a person put outside the tiers. */
  tier: Tier | null;
  text: string;
  /** The budget cut it off, within the line or right after it. */
  cut: boolean;
}

const MARKER = /^<<truncated due to [a-z-]+=\d+>>$/;
const FENCE = /^(?:`{3,}|~{3,})/;
const SAYS_SOMETHING = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;

export function rememberedLines(given: PromptMemory, personaId: PersonaId): RememberedLine[] {
  return [...memoryLines(given.memory, `${personaId}/MEMORY.md`), ...dailyLines(given.dailyLog)];
}

function memoryLines(memory: string, file: string): RememberedLine[] {
  let tier: Tier | null = null;
  return collect(memory, (line) => {
    const heading = /^(#{1,6})(?:\s+(.*))?$/.exec(line);
    if (!heading) return { file, tier };
    if ((heading[1] ?? '').length <= 2) tier = tierNamed(heading[2] ?? '');
    return null;
  });
}

function dailyLines(dailyLog: string): RememberedLine[] {
  let file = '';
  return collect(dailyLog, (line) => {
    const date = /^--- (\d{4}-\d{2}-\d{2}) ---$/.exec(line)?.[1];
    if (date === undefined) return { file, tier: null };
    file = `memory/${date}.md`;
    return null;
  });
}

/** `placeOf` returns where a line belongs, or null for a line that only says where others do. */
function collect(
  text: string,
  placeOf: (line: string) => Pick<RememberedLine, 'file' | 'tier'> | null,
): RememberedLine[] {
  const lines: RememberedLine[] = [];
  for (const raw of text.split(/\r\n|\n|\r/)) {
    const line = raw.trim();
    const last = lines.at(-1);
    if (MARKER.test(line) && last) last.cut = true;
    if (MARKER.test(line) || FENCE.test(line) || !SAYS_SOMETHING.test(line)) continue;
    const place = placeOf(line);
    if (place) lines.push({ ...place, text: line, cut: false });
  }
  return lines;
}

function tierNamed(title: string): Tier | null {
  const number = /^tier\s*([123])(?!\d)/i.exec(title)?.[1];
  return number === undefined ? null : (Number(number) as Tier);
}

/** The version that added a line; null if none did. `versions` are newest first. */
export function broughtBy(line: RememberedLine, versions: Version[]): Version | null {
  const found = versions.find(
    ({ file, tier, before, after }) =>
      file === line.file && tier === line.tier && stands(line, after) && !stands(line, before),
  );
  return found ?? null;
}

function stands(line: RememberedLine, text: string): boolean {
  return text.split('\n').some((each) => {
    const trimmed = each.trim();
    return trimmed === line.text || (line.cut && trimmed.startsWith(line.text));
  });
}
