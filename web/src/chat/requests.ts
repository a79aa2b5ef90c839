/** Requests of the place Chat. */
import type { BoardCommand, BoardPersonas } from '../../../src/board/protocol.ts';
import { ask, read } from '../api.ts';
import type { Attached, Waiting } from './queue.ts';

/** Takes a message once per id. */
export async function deliver({ id, chat, text, files }: Waiting): Promise<void> {
  await ask(`api/board/chats/${encodeURIComponent(chat)}/messages`, {
    method: 'POST',
    json: { id, text, files },
  });
}

/** Presses a button below a message, once per id. */
export async function press(chat: string, value: string): Promise<void> {
  await ask(`api/board/chats/${encodeURIComponent(chat)}/choices`, {
    method: 'POST',
    json: { id: newId(), value },
  });
}

/** A command that is sent by a button: now or not at all. */
export async function order(chat: string, text: string): Promise<void> {
  await deliver({ id: newId(), chat, text, files: [], at: 0 });
}

export async function upload(file: File): Promise<Attached> {
  const query = new URLSearchParams({ name: file.name, type: file.type || 'application/octet-stream' });
  return (await ask<Attached>(`api/board/files?${query}`, { method: 'POST', bytes: file })).body;
}

export function personasOf(chat: string, signal: AbortSignal): Promise<BoardPersonas> {
  return read(`api/board/chats/${encodeURIComponent(chat)}/personas`, signal);
}

export function commands(): Promise<{ commands: BoardCommand[] }> {
  return read('api/board/commands');
}

/** Their ids. */
export async function chats(signal: AbortSignal): Promise<string[]> {
  return (await read<{ chats: { chat: string }[] }>('api/board/chats', signal)).chats.map(({ chat }) => chat);
}

/** Letters and digits: plain HTTP has no `crypto.randomUUID`. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(15));
  return Array.from(bytes, (byte) => byte.toString(36).padStart(2, '0')).join('');
}
