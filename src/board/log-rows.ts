/** Rows of a log as the page shows them: with names and faces, and addresses for files. */
import { BOARD_OWNER, type BoardFeed, type LoggedRow, type LogPage, type LogPlace } from '../core/board.js';
import { printableLine } from '../core/cut.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { type Persona, type Personas, personaName } from '../core/persona.js';
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
  const present = page.rows.some(({ author }) => author.kind === 'persona')
    ? await parts.personas.list(roomParts(room).chatId)
    : [];
  return { ...page, shown: page.rows.map((row) => shownRow(parts, room, row, present)) };
}

export function pageOf({ shown: rows, before, after, isEnd }: ReadLog): RowPage {
  return { rows, before, after: isEnd ? null : after, position: isEnd ? after : null };
}

/** A picture that needs no other server; the page loads from none. */
export function faceOf({ avatar }: { avatar: string | null }): string | null {
  return avatar !== null && /^data:image\/(?!svg)/.test(avatar) ? avatar : null;
}

function shownRow(parts: LogParts, room: RoomId, row: LoggedRow, personas: Persona[]): LogRow {
  const { key, at, text, state, replyTo, forwardedFrom, turn, files, calls, approvals, remembered, choices } =
    row;
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
  if (choices.length > 0) shown.choices = choices;
  return shown;
}

function authorOf({ author }: LoggedRow, personas: readonly Persona[]): RowAuthor {
  if (author.kind === 'gateway') return { kind: 'gateway', name: 'coterie' };
  if (author.kind === 'person') {
    return author.id === BOARD_OWNER ? { ...author, own: true } : author;
  }
  const { kind, id, name } = author;
  const persona = personas.find((each) => each.id === id);
  return persona
    ? { kind, id, name: persona.name, avatar: faceOf(persona) }
    : { kind, id, name: name ?? personaName(personas, id), avatar: null };
}
