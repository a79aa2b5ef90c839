/** Rows of a log as the page shows them: with names and faces, and addresses for files. */
import { BOARD_OWNER, type BoardFeed, type LoggedRow, type LogPage, type LogPlace } from '../core/board.js';
import { printableLine } from '../core/cut.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { type Persona, type Personas, personaName } from '../core/persona.js';
import { faceOf } from './portraits.js';
import type { LogRow, RowAuthor, RowPage } from './protocol.js';

export interface LogParts {
  feed: BoardFeed;
  personas: Personas;
  /** JSON in which nothing hides. */
  plainArguments(json: string): string;
  now(): number;
}

const ROWS_A_PAGE = 100;

export interface ReadLog extends LogPage {
  shown: LogRow[];
}

export async function readLog(
  parts: LogParts,
  room: RoomId,
  from: LogPlace,
  most = ROWS_A_PAGE,
): Promise<ReadLog> {
  const page = await parts.feed.log({ room, from, most });
  const said = new Set(page.rows.flatMap(({ author }) => (author.kind === 'persona' ? [author.id] : [])));
  const { chatId } = roomParts(room);
  const personas = said.size > 0 ? await parts.personas.list(chatId) : [];
  const present = await Promise.all(
    personas.map(async (each) => ({
      ...each,
      face: said.has(each.id) ? await faceOf(chatId, each) : null,
    })),
  );
  return { ...page, shown: page.rows.map((row) => shownRow(parts, room, row, present)) };
}

export function pageOf({ shown: rows, before, after, isEnd }: ReadLog): RowPage {
  return { rows, before, after: isEnd ? null : after, position: isEnd ? after : null };
}

type Present = Persona & { face: string | null };

function shownRow(parts: LogParts, room: RoomId, row: LoggedRow, personas: Present[]): LogRow {
  const { key, at, text, state, replyTo, forwardedFrom, turn, files, calls, approvals, remembered } = row;
  const isFailed = state === 'failed';
  const shown: LogRow = { key, author: authorOf(row, personas), at, text: isFailed ? '' : text };
  if (row.plain) shown.plain = true;
  if (state !== null) shown.state = state;
  if (isFailed) shown.error = text;
  if (files.length > 0) {
    shown.files = files.map(({ name, type, bytes, place }, n) => ({
      ...{ name: printableLine(name), bytes, type: type ?? 'application/octet-stream' },
      address: place && `api/board/rows/file?${new URLSearchParams({ room, row: key, n: `${n}` })}`,
    }));
  }
  if (replyTo !== null) shown.replyTo = replyTo;
  if (forwardedFrom !== null) shown.forwardedFrom = forwardedFrom;
  if (turn !== null) shown.turn = turn;
  if (calls.length > 0) shown.calls = calls;
  if (approvals.length > 0) {
    shown.approvals = approvals.map((each) => ({
      ...each,
      arguments: parts.plainArguments(each.arguments),
      decision: each.decision ?? (each.until < parts.now() ? 'expired' : null),
    }));
  }
  if (remembered.length > 0) shown.remembered = remembered;
  if (row.choices.length > 0) shown.choices = row.choices;
  if (row.versions !== null) shown.versions = row.versions;
  return shown;
}

function authorOf({ author }: LoggedRow, personas: readonly Present[]): RowAuthor {
  if (author.kind === 'gateway') return { kind: 'gateway', name: 'coterie' };
  if (author.kind === 'person') {
    return author.id === BOARD_OWNER ? { ...author, own: true } : author;
  }
  const { kind, id, name } = author;
  const persona = personas.find((each) => each.id === id);
  return persona
    ? { kind, id, name: persona.name, avatar: persona.face }
    : { kind, id, name: name ?? personaName(personas, id), avatar: null };
}
