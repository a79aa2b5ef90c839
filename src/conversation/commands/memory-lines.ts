/** Splits what a persona's last answer was given into lines, each with where it is from. Pure. */
import type { PersonaId } from '../../core/ids.js';
import type { Tier, Version } from '../../core/memory.js';
import type { PromptMemory } from '../../core/memory-history.js';
import type { Step } from '../../core/transcript.js';

export type GivenLine = RememberedLine | OtherLine;

export interface RememberedLine {
  kind: 'remembered';
  /** As in `Version`. */
  file: string;
  /** null in the daily log, and for text that a person put outside the tiers. */
  tier: Tier | null;
  text: string;
  /** The budget cut it off, within the line or right after it. */
  cut: boolean;
}

export interface OtherLine {
  kind: 'recalled' | 'summary' | 'found';
  /** A recalled or found line names who said it and when, or its file. */
  text: string;
  /** For `found`: what was searched for. */
  query: string;
}

/** The tool whose results are given to the model as lines. */
const SEARCH = 'search_memory';
const MARKER = /^<<truncated due to [a-z-]+=\d+>>$/;
const FENCE = /^(?:`{3,}|~{3,})/;
const SAYS_SOMETHING = /[\p{L}\p{N}\p{Extended_Pictographic}]/u;

/** In the order of the prompt; `steps` are those of the answer's turn. */
export function givenLines(given: PromptMemory, steps: Step[], personaId: PersonaId): GivenLine[] {
  return [
    ...memoryLines(given.memory, `${personaId}/MEMORY.md`),
    ...dailyLines(given.dailyLog),
    ...otherLines('recalled', given.recalled),
    ...otherLines('summary', given.summary),
    ...foundLines(steps),
  ];
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
  for (const line of trimmedLines(text)) {
    const last = lines.at(-1);
    if (MARKER.test(line) && last) last.cut = true;
    if (!isContent(line)) continue;
    const place = placeOf(line);
    if (place) lines.push({ kind: 'remembered', ...place, text: line, cut: false });
  }
  return lines;
}

/** Without headings, which only order what stands below them. */
function otherLines(kind: OtherLine['kind'], text: string, query = ''): OtherLine[] {
  return trimmedLines(text)
    .filter((line) => isContent(line) && !/^#{1,6}\s/.test(line))
    .map((line) => ({ kind, text: line, query }));
}

/** Failed searches, and those that found nothing, gave no lines. */
function foundLines(steps: Step[]): OtherLine[] {
  const searches = steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
  return searches.flatMap(({ id, name, arguments: given }) => {
    if (name !== SEARCH) return [];
    const result = steps.find((step) => step.kind === 'result' && step.callId === id);
    if (result?.kind !== 'result' || result.failed) return [];
    return otherLines('found', result.content, queryIn(given)).filter(({ text }) => text.startsWith('- '));
  });
}

/** Empty where `/memory forget` left arguments that are no JSON any more. */
function queryIn(given: string): string {
  try {
    const { query }: { query?: unknown } = JSON.parse(given);
    return typeof query === 'string' ? query : '';
  } catch {
    return '';
  }
}

function trimmedLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/).map((line) => line.trim());
}

function isContent(line: string): boolean {
  return !MARKER.test(line) && !FENCE.test(line) && SAYS_SOMETHING.test(line);
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

/** Whether a line of this tier, as it is now, was written after words from outside had been read. */
export function holdsOutside(versions: Version[], file: string, tier: Tier, text: string): boolean {
  return text.split('\n').some((raw) => {
    const line = raw.trim();
    if (line === '') return false;
    return (
      broughtBy({ kind: 'remembered', file, tier, text: line, cut: false }, versions)?.cause.tainted === true
    );
  });
}

function stands(line: RememberedLine, text: string): boolean {
  return text.split('\n').some((each) => {
    const trimmed = each.trim();
    return trimmed === line.text || (line.cut && trimmed.startsWith(line.text));
  });
}
