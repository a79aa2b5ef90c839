/** The page's server in the real process: the page comes from the build, and a browser stays signed in over a kill. */
import { afterEach, expect, it } from 'vitest';
import { type Home, makeHome, type Running, run } from '../harness/gateway.js';

const TOKEN = 'a long and unguessable token';

let home: Home;
let gateway: Running;
afterEach(async () => {
  await gateway.stop('SIGKILL');
  await home.remove();
});

it('the page is there in packed form, and a session outlasts a kill, though no file holds it', async () => {
  home = await makeHome({ board: { port: 0, token: TOKEN } });
  gateway = run(home);
  const first = await gateway.url();
  const page = await fetch(`${first}/`, { headers: { 'accept-encoding': 'br' } });
  expect(page.headers.get('content-encoding')).toBe('br');
  const text = await page.text();
  expect(text).toContain('<title>coterie</title>');
  const files = [...text.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, path]) => path);
  expect(files.length).toBeGreaterThanOrEqual(3);
  for (const file of files) expect((await fetch(`${first}/${file}`)).status, file).toBe(200);
  const answer = await fetch(`${first}/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: first },
    body: JSON.stringify({ token: TOKEN }),
  });
  expect(answer.status).toBe(204);
  const [, session = ''] = /^coterie_\d+=([\w-]+);/.exec(answer.headers.get('set-cookie') ?? '') ?? [];
  expect(session).toHaveLength(43);
  await gateway.stop('SIGKILL');
  gateway = run(home);
  const second = await gateway.url();
  const cookie = `coterie_${new URL(second).port}=${session}`;
  const hello = await fetch(`${second}/api/board/hello`, { headers: { cookie } });
  expect([hello.status, await hello.json()]).toEqual([
    200,
    expect.objectContaining({ signedInBy: 'session' }),
  ]);
  expect((await fetch(`${second}/api/board/hello`)).status).toBe(401);
  for (const file of ['data/coterie.db', 'data/coterie.db-wal', 'data/audit.jsonl']) {
    expect((await home.read(file)) ?? '', file).not.toContain(session);
  }
  expect(gateway.err()).not.toContain(session);
});
