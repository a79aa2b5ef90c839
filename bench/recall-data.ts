/**
 * The data sets of `bench:recall` in one format: conversations of LoCoMo (`conv-N.json`), REALTALK
 * (`data/Chat_N_….json` of danny911kr/REALTALK) and BEAM (`chats/100K/N/chat.json` of mohammadtavakoli78/BEAM, with its
 * `probing_questions/`). The content decides which one a file belongs to.
 */
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export interface Told {
  /** The ID by which evidence refers to it. */
  id: string;
  session: string;
  author: string;
  /** An assistant's messages are the persona's. */
  byPersona: boolean;
  text: string;
  at: number;
}

export interface Asked {
  question: string;
  evidence: Set<string>;
  /** Sessions with evidence. */
  sessions: Set<string>;
  /** Its category or ability in the data set. */
  about: string;
}

export interface History {
  set: 'LoCoMo' | 'REALTALK' | 'BEAM';
  name: string;
  told: Told[];
  asked: Asked[];
}

interface Turn {
  speaker: string;
  dia_id: string;
  text?: string;
  clean_text?: string;
  blip_caption?: string;
  date_time?: string;
}
interface Question {
  question: string;
  evidence?: string[];
  category: number;
}
type Sessions = Record<string, string | Turn[]>;
type Batch = {
  turns: { id: number; role: string; content: string; time_anchor?: string }[][];
};
type Probing = Record<string, { question: string; source_chat_ids?: unknown }[]>;

const MINUTE_MS = 60_000;
const LOCOMO = ['', 'multi-hop', 'temporal', 'open-domain', 'single-hop', 'adversarial'];
const REALTALK = ['', 'multi-hop', 'temporal', 'commonsense'];
/** Abilities that ask for facts. The evidence of the others is half the chat, an instruction, or nothing. */
const BEAM = [
  'information_extraction',
  'knowledge_update',
  'multi_session_reasoning',
  'preference_following',
  'temporal_reasoning',
];

export async function readHistory(file: string): Promise<History> {
  const content: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (Array.isArray(content)) return beam(file, content as Batch[]);
  const name = basename(file, '.json');
  const { conversation, qa, ...sessions } = content as { conversation?: Sessions; qa: Question[] } & Sessions;
  return conversation === undefined
    ? talk('REALTALK', name, sessions, qa, REALTALK)
    : talk('LoCoMo', name, conversation, qa, LOCOMO);
}

/** LoCoMo gives a time per session only: its turns follow at one a minute. */
function talk(
  set: History['set'],
  name: string,
  sessions: Sessions,
  qa: Question[],
  about: string[],
): History {
  const told: Told[] = [];
  for (let n = 1; sessions[`session_${n}_date_time`] !== undefined; n++) {
    const said = sessions[`session_${n}`];
    if (!Array.isArray(said)) continue;
    const from = timeOf(String(sessions[`session_${n}_date_time`]));
    for (const [minute, turn] of said.entries()) {
      const caption = turn.blip_caption === undefined ? '' : ` [image: ${turn.blip_caption}]`;
      told.push({
        ...{ id: turn.dia_id, session: String(n), author: turn.speaker, byPersona: false },
        text: (turn.text ?? turn.clean_text ?? '') + caption,
        at: turn.date_time === undefined ? from + minute * MINUTE_MS : timeOf(turn.date_time),
      });
    }
  }
  return history(
    set,
    name,
    told,
    qa.map(({ question, evidence = [], category }) => ({
      ...{ question, about: about[category] ?? String(category) },
      evidence: new Set(cleaned(evidence)),
    })),
  );
}

/** `8:56 pm on 20 July, 2023` or `29.12.2023, 22:42:04`. */
function timeOf(text: string): number {
  const [, time, half, day, month, year] = /^(\d+:\d+) (am|pm) on (\d+) (\w+), (\d+)$/.exec(text) ?? [];
  if (time !== undefined) return Date.parse(`${month} ${day}, ${year} ${time} ${half} UTC`);
  return Date.parse(text.replace(/^(\d+)\.(\d+)\.(\d+), /, '$3-$2-$1T').concat('Z'));
}

/** Also accepts the variants 'D8:6; D9:17' and 'D30:05'. */
function cleaned(evidence: string[]): string[] {
  return evidence.flatMap((text) =>
    Array.from(text.matchAll(/D:?(\d+):0*(\d+)/g), ([, a, b]) => `D${a}:${b}`),
  );
}

/** Only some messages have a date: the others follow at one a minute. Generation marks at the end are removed. */
async function beam(file: string, batches: Batch[]): Promise<History> {
  const probing = join(dirname(file), 'probing_questions', 'probing_questions.json');
  const questions = JSON.parse(await readFile(probing, 'utf8')) as Probing;
  const told: Told[] = [];
  let at = 0;
  for (const [n, { turns }] of batches.entries()) {
    for (const { id, role, content, time_anchor } of turns.flat()) {
      at = time_anchor === undefined ? at + MINUTE_MS : Date.parse(`${time_anchor.replaceAll('-', ' ')} UTC`);
      told.push({
        ...{ id: String(id), session: String(n), author: role, byPersona: role !== 'user', at },
        text: content.replace(/\s*->->[\s\d,./NA]*$/, ''),
      });
    }
  }
  return history(
    'BEAM',
    basename(dirname(file)),
    told,
    BEAM.flatMap((about) =>
      (questions[about] ?? []).map(({ question, source_chat_ids }) => ({
        ...{ question, about: about.replaceAll('_', ' ') },
        evidence: new Set(numbersIn(source_chat_ids).map(String)),
      })),
    ),
  );
}

/** Accepts a list, or lists by kind of evidence. */
function numbersIn(ids: unknown): number[] {
  if (typeof ids === 'number') return [ids];
  return typeof ids === 'object' && ids !== null ? Object.values(ids).flatMap(numbersIn) : [];
}

/** Drops evidence that is missing from the chat, and questions without any. */
function history(set: History['set'], name: string, told: Told[], asked: Omit<Asked, 'sessions'>[]): History {
  const sessionOf = new Map(told.map(({ id, session }) => [id, session]));
  const usable = asked.map((each) => {
    const evidence = new Set([...each.evidence].filter((id) => sessionOf.has(id)));
    return { ...each, evidence, sessions: new Set([...evidence].flatMap((id) => sessionOf.get(id) ?? [])) };
  });
  return { set, name, told, asked: usable.filter(({ evidence }) => evidence.size > 0) };
}
