/** Asks the gateway for files of memory and their history; texts that are not saved stay until the page ends. */
import { effect } from '@preact/signals';
import type { MemoryChange, MemoryChat, MemoryPlaces, MemoryText } from '../../../src/board/protocol.ts';
import { ask, Refusal, read } from '../api.ts';
import { hello } from '../session.ts';
import { spliceOf } from './budget.ts';

export interface FileOf {
  chatId: string;
  personaId: string;
  /** As in the history: `luna/MEMORY.md`. */
  file: string;
}

interface Draft {
  base: MemoryText;
  text: string;
}

const BASE = 'api/board/memory';

/** By file. */
const drafts = new Map<string, Draft>();

// Signing out leaves nothing behind; a session that merely ended takes nobody's words.
effect(() => {
  if (hello.value === null) drafts.clear();
});

export const fileKey = ({ chatId, file }: FileOf) => `${chatId}/${file}`;

export function draftOf(of: FileOf): Draft | null {
  return drafts.get(fileKey(of)) ?? null;
}

export function keepDraft(of: FileOf, draft: Draft): void {
  if (draft.text === draft.base.text) drafts.delete(fileKey(of));
  else drafts.set(fileKey(of), draft);
}

/** Files with words that are not saved. */
export function unsaved(): string[] {
  return [...drafts.keys()];
}

export function discardDrafts(): void {
  drafts.clear();
}

const query = (values: Record<string, string>) => new URLSearchParams(values).toString();

export async function readChats(signal: AbortSignal): Promise<MemoryChat[]> {
  return (await read<{ chats: MemoryChat[] }>(BASE, signal)).chats;
}

export async function readPlaces(
  chatId: string,
  signal: AbortSignal,
): Promise<{ chatId: string; places: MemoryPlaces }> {
  return { chatId, places: await read(`${BASE}/places?${query({ chatId })}`, signal) };
}

export function readFile(of: FileOf): Promise<MemoryText> {
  return read(`${BASE}/file?${query({ ...of })}`);
}

/** 'changed': somebody else wrote it since it was read. */
export async function saveFile(
  of: FileOf,
  base: MemoryText,
  text: string,
): Promise<{ kind: 'saved' | 'changed'; file: MemoryText }> {
  try {
    const { body } = await ask<MemoryText>(`${BASE}/file?${query({ ...of })}`, {
      method: 'PUT',
      json: spliceOf(base.text, text),
      headers: { 'if-match': `"${base.tag}"` },
    });
    return { kind: 'saved', file: body };
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 409) throw error;
    return { kind: 'changed', file: error.body.onDisk as MemoryText };
  }
}

export async function readHistory(
  { chatId, personaId }: Omit<FileOf, 'file'>,
  before: number | null,
  signal: AbortSignal,
): Promise<{ items: MemoryChange[]; next: number | null }> {
  const from = before === null ? {} : { before: `${before}` };
  const page = await read<{ changes: MemoryChange[]; before: number | null }>(
    `${BASE}/history?${query({ chatId, personaId, ...from })}`,
    signal,
  );
  return { items: page.changes, next: page.before };
}

/** The text that is there now, if it was changed again since; null: it is undone. */
export async function undo(id: string): Promise<string | null> {
  try {
    await ask(`${BASE}/undo`, { method: 'POST', json: { id } });
    return null;
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 409) throw error;
    return String(error.body.now ?? '');
  }
}
