/** A line so slow that a connection takes a second, to a server of which one address leads nowhere. */
import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { connect, type LookupFunction, setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { processConfig } from '../../src/config.js';
import { makeHome } from '../harness/gateway.js';
import { straight } from '../harness/straight.js';

/**
 * Takes no connection for a second, and has room for hardly any that wait: Linux then drops what else comes, and the other
 * end asks again a second later (tcp(7), tcp_abort_on_overflow).
 */
const SERVER = `
  const server = require('node:http').createServer((_, response) => response.end('at last'));
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    process.send(server.address().port);
    process.once('message', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700));
  });
`;

const toBoth: LookupFunction = (_name, _options, done) =>
  done(null, [
    { address: '127.0.0.1', family: 4 },
    // For documentation (RFC 3849): nobody has a route to it, so that a system puts it last (RFC 6724).
    { address: '2001:db8::1', family: 6 },
  ]);

async function slowServer(): Promise<number> {
  const child = spawn(process.execPath, ['-e', SERVER], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const port = await new Promise<number>((resolve) => child.once('message', (told) => resolve(Number(told))));
  child.send('stop');
  await new Promise((resolve) => setTimeout(resolve, 50));
  const waiting = Array.from({ length: 2 }, () => connect({ port, host: '127.0.0.1' }).on('error', () => {}));
  onTestFinished(() => {
    for (const socket of waiting) socket.destroy();
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  return port;
}

function ask(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: 'server.test', port, agent: straight.agent(false, { lookup: toBoth }) }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve(text);
    }).on('error', (error) => reject(error instanceof AggregateError ? error.errors.at(-1) : error));
  });
}

test('is waited for, as long as network.connect_attempt_seconds says', async () => {
  const home = await makeHome({});
  onTestFinished(home.remove);
  await processConfig(`${home.folder}/config.yaml`);
  expect(await ask(await slowServer())).toBe('at last');
  await home.configure({ network: { connect_attempt_seconds: 0.25 } });
  await processConfig(`${home.folder}/config.yaml`);
  await expect(ask(await slowServer())).rejects.toThrow(/ETIMEDOUT|UNREACH/);
  setDefaultAutoSelectFamilyAttemptTimeout(250);
});
