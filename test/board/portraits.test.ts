/** Pictures of personas: which of them the page is given, and how. */
import { mkdir, mkdtemp, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type BoardApi, createApi } from '../../src/board/api.js';
import { addPortraits, faceOf } from '../../src/board/portraits.js';
import type { Persona, Personas } from '../../src/core/persona.js';
import { createPersonas } from '../../src/groups/personas.js';
import { picture } from '../harness/cards.js';
import { quietLog } from '../harness/quiet.js';
import { ask, PAGE, startForTest } from './board-harness.js';

const CHAT = 'board_main';

let groupsDir: string;
let personas: Personas;
let api: BoardApi;

beforeEach(async () => {
  groupsDir = await mkdtemp(join(tmpdir(), 'coterie-portraits-'));
  personas = createPersonas({ groupsDir, log: quietLog, clock: { now: () => 0 } });
  api = createApi(quietLog);
  addPortraits(api, personas);
  await put(`${CHAT}/luna/PERSONA.md`, '---\nname: Luna\n---\n');
});
afterEach(() => rm(groupsDir, { recursive: true }));

async function put(file: string, content: string | Buffer): Promise<string> {
  const path = join(groupsDir, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  return path;
}

const luna = async () => (await personas.get(CHAT, 'luna')) as Persona;
const face = async () => faceOf(CHAT, await luna());

async function shown(address: string, method = 'GET') {
  const response = await api.request(`/${address}`, { method });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

it('are kept by a browser under an address that changes with the file', async () => {
  expect(await face()).toBe(null);
  const first = await picture('teal');
  const path = await put(`${CHAT}/luna/portrait.png`, first);
  const before = (await face()) ?? '';
  expect(before).toMatch(/^portraits\/[0-9a-f]{16}\.png\?chat=board_main&persona=luna$/);
  const { response, bytes } = await shown(before);
  expect(response.status).toBe(200);
  expect(bytes.equals(first)).toBe(true);
  expect(response.headers.get('content-type')).toBe('image/png');
  expect(response.headers.get('content-length')).toBe(`${first.length}`);
  expect(response.headers.get('cache-control')).toBe('private, max-age=31536000, immutable');
  expect(response.headers.get('content-security-policy')).toContain('sandbox');
  expect((await shown(before, 'HEAD')).bytes.length).toBe(0);

  const second = await picture('red');
  await put(`${CHAT}/luna/portrait.png`, second);
  await utimes(path, 5, 5);
  const after = (await face()) ?? '';
  expect(after).not.toBe(before);
  expect((await shown(after)).bytes.equals(second)).toBe(true);
  // The old address is not kept with the new picture.
  const late = await shown(before);
  expect(late.bytes.equals(second)).toBe(true);
  expect(late.response.headers.get('cache-control')).toBe(null);
});

it('come from the library where the chat has none', async () => {
  const bytes = await picture('olive');
  await put('personas/luna/portrait.png', bytes);
  expect((await shown((await face()) ?? '')).bytes.equals(bytes)).toBe(true);
});

it('are never fetched from an address, which a card may hold', async () => {
  for (const avatar of [
    'https://evil.invalid/a.png',
    'javascript:1',
    'data:image/svg+xml,<svg/>',
    '../../x',
  ]) {
    expect(await faceOf(CHAT, { ...(await luna()), avatar })).toBe(null);
  }
  expect(await faceOf(CHAT, { ...(await luna()), avatar: 'data:image/png;base64,AA' })).toBe(
    'data:image/png;base64,AA',
  );
  await put(`${CHAT}/luna/portrait.png`, await picture());
  expect(await faceOf(CHAT, { ...(await luna()), avatar: 'https://evil.invalid/a.png' })).toMatch(
    /^portraits\//,
  );
});

it('of 16 MB are shown, larger ones are not', async () => {
  const path = await put(`${CHAT}/luna/portrait.png`, await picture());
  await truncate(path, 16 * 1024 * 1024);
  const { response, bytes } = await shown((await face()) ?? '');
  expect(response.status).toBe(200);
  expect(bytes.length).toBe(16 * 1024 * 1024);
  const address = (await face()) ?? '';
  await truncate(path, 16 * 1024 * 1024 + 1);
  expect(await face()).toBe(null);
  expect((await shown(address)).response.status).toBe(404);
});

it('that are no PNG, are empty, unpack to a wall, are a link or a folder, are not there', async () => {
  const wall = await picture();
  wall.writeUInt32BE(40_000, 16);
  wall.writeUInt32BE(40_000, 20);
  for (const content of ['', '<svg onload="alert(1)"/>', '\x89PNG\r\n\x1a\n', wall]) {
    await put(`${CHAT}/luna/portrait.png`, content);
    expect((await shown((await face()) ?? '')).response.status).toBe(404);
  }
  const secret = await put('secret.png', await picture());
  await rm(join(groupsDir, `${CHAT}/luna/portrait.png`));
  await symlink(secret, join(groupsDir, `${CHAT}/luna/portrait.png`));
  expect(await face()).toBe(null);
  const asked = `portraits/0.png?${new URLSearchParams({ chat: CHAT, persona: 'luna' })}`;
  expect((await shown(asked)).response.status).toBe(404);
  await rm(join(groupsDir, `${CHAT}/luna/portrait.png`));
  await mkdir(join(groupsDir, `${CHAT}/luna/portrait.png`));
  expect(await face()).toBe(null);
  expect((await shown(asked)).response.status).toBe(404);
});

it('of nobody, of a path, of half a request', async () => {
  for (const persona of ['nobody', '..', '../luna', 'luna/../luna', '\0']) {
    const asked = `portraits/0.png?${new URLSearchParams({ chat: CHAT, persona })}`;
    expect((await shown(asked)).response.status, persona).toBe(404);
  }
  expect((await shown('portraits/0.png')).response.status).toBe(400);
  expect((await shown('portraits/..%2F..%2Fsecret?chat=board_main&persona=b')).response.status).toBe(404);
});

it('need the token as everything else does', async () => {
  const board = await startForTest({ token: 'a long secret', pageFiles: groupsDir, page: async () => PAGE });
  const path = '/portraits/0.png?chat=board_main&persona=luna';
  const refused = await ask(board, 'GET', path);
  expect(refused.status).toBe(401);
  expect(refused.headers['x-content-type-options']).toBe('nosniff');
  await board.close();
});
