/** The setup over HTTP against the real process: saved configurations are taken in while it runs, and nothing is lost. */
import { chmod, mkdir, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually, type Running } from '../harness/gateway.js';
import { type Stage, type StageOptions, stage } from '../harness/telegram.js';

const KEY = 'sk-very-secret-key-of-a-test';

let on: Stage;
afterEach(() => on.close());

/** Everything that the gateway answered, to look for secrets in it. */
let heard = '';

async function ask(gateway: Running, method: string, path: string, body?: unknown) {
  const response = await fetch(`${await gateway.url()}/api/board/setup${path}`, {
    method,
    ...(body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const text = await response.text();
  heard += text;
  return { status: response.status, body: text === '' ? null : JSON.parse(text) };
}

async function begin(config: string, options: StageOptions = {}): Promise<Running> {
  heard = '';
  on = await stage(options);
  await on.home.write('config.yaml', config);
  return on.start();
}

const BASE =
  '# mine\nboard:\n  port: 0 # any\nlog: { format: json, level: debug }\nconversation: { debounce_ms: 0 }\n';

/** Resolves when the gateway that comes next is up. */
async function nextUp(gateway: Running, count: number): Promise<void> {
  await eventually(() => gateway.err().split('coterie is up').length - 1 >= count, `gateway ${count} is up`);
}

const config = async () => (await on.home.read('config.yaml')) ?? '';

describe('a model that is set up', () => {
  it('is tried with one request, saved, and answers soon after', async () => {
    const gateway = await begin(BASE);
    const wish = { address: on.model.url, key: KEY, model: 'scripted' };
    expect((await ask(gateway, 'GET', '')).body).toMatchObject({ isDue: true, model: null });
    expect((await ask(gateway, 'POST', '/model/try', wish)).body).toMatchObject({ works: true });
    expect(on.model.requests).toHaveLength(1);
    expect(await config()).toBe(BASE);
    const began = Date.now();
    expect((await ask(gateway, 'PUT', '/model', wish)).body).toMatchObject({ isSame: false });
    await eventually(
      async () => (await ask(gateway, 'GET', '')).body.model?.name === 'scripted',
      'the model is in effect',
    );
    expect(Date.now() - began).toBeLessThan(10_000);
    expect(await config()).toBe(
      `${BASE}model:\n  base_url: ${on.model.url}\n  name: scripted\n  api_key: ${KEY}\n`,
    );
    expect((await ask(gateway, 'GET', '')).body).toMatchObject({ isDue: false, model: { hasKey: true } });
    expect((await ask(gateway, 'PUT', '/model', { ...wish, key: null })).body).toMatchObject({
      isSame: true,
    });
    expect(await gateway.stop()).toBe(0);
    for (const text of [heard, gateway.err(), (await on.home.read('data/audit.jsonl')) ?? '']) {
      expect(text).not.toContain(KEY);
    }
    expect(await on.home.read('data/audit.jsonl')).toMatch(/"configuration".*model\.base_url, model\.name/);
    expect(gateway.err().match(/http listener on/g)).toHaveLength(1);
  });

  it('has its refusal shown, cut and without the key', async () => {
    const gateway = await begin(BASE);
    on.model.reply({ status: 401, body: { error: { message: `no such key: ${KEY} ${'x'.repeat(500)}` } } });
    const tried = await ask(gateway, 'POST', '/model/try', { address: on.model.url, key: KEY, model: 'm' });
    expect(tried.body.works).toBe(false);
    expect(tried.body.says).toMatch(/^401: no such key: \[redacted\] x+/);
    expect(tried.body.says.length).toBeLessThanOrEqual(200);
    on.model.reply({ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' });
    const led = await ask(gateway, 'POST', '/model/try', { address: on.model.url, key: null, model: 'm' });
    expect(led.body.works).toBe(false);
    for (const address of [
      'http://169.254.169.254/v1',
      'http://[fe80::1]/v1',
      'http://[::ffff:169.254.1.1]/v1',
      'http://2852039166/v1',
      'http://0xa9fea9fe/v1',
      'http://[64:ff9b::a9fe:a9fe]/v1',
      'http://169.254.169.254./v1',
    ]) {
      const refused = await ask(gateway, 'POST', '/model/try', { address, key: null, model: 'm' });
      expect(refused.body).toMatchObject({ works: false, says: expect.stringContaining('link-local') });
      const unsaved = await ask(gateway, 'PUT', '/model', { address, key: null, model: 'm' });
      expect(unsaved).toMatchObject({ status: 422, body: { error: expect.stringContaining('link-local') } });
    }
    expect(await config()).toBe(BASE);
    const no = await ask(gateway, 'POST', '/model/try', {
      address: 'file:///etc/passwd',
      key: null,
      model: 'm',
    });
    expect(no.body).toMatchObject({ works: false, says: expect.stringContaining('http') });
    await gateway.stop();
    expect(heard + gateway.err()).not.toContain(KEY);
  });

  it('holds nobody up, whatever the server answers, and never reads the environment or a file', async () => {
    heard = '';
    on = await stage();
    await on.home.write('config.yaml', BASE);
    const gateway = await on.start({ MY_KEY: KEY });
    const wish = { address: on.model.url, key: null, model: 'm' };
    for (const body of ['<style'.repeat(150_000), '<'.repeat(900_000), '"choices"'.repeat(100_000)]) {
      on.model.reply({ status: 400, body });
      const began = Date.now();
      expect((await ask(gateway, 'POST', '/model/try', wish)).body).toMatchObject({ works: false });
      expect(Date.now() - began).toBeLessThan(3_000);
    }
    for (const typed of [`\${MY_KEY}`, `\${file:${join(on.home.folder, 'config.yaml')}}`]) {
      await ask(gateway, 'POST', '/model/try', { ...wish, key: typed, model: typed });
      const { headers, body } = on.model.requests.at(-1) ?? {};
      expect(headers?.authorization).toBe(`Bearer ${typed}`);
      expect(body?.model).toBe(typed);
    }
    await gateway.stop();
  });

  it('is tried with the login of its address, of which nothing is shown', async () => {
    heard = '';
    on = await stage();
    const address = on.model.url.replace('//', '//me:very-secret-login@');
    await on.home.write('config.yaml', `${BASE}model: { base_url: "${address}", name: scripted }\n`);
    const gateway = await on.start();
    const { body } = await ask(gateway, 'GET', '');
    expect(body.model.address).toBe(on.model.url);
    const wish = { address: body.model.address, key: null, model: 'scripted' };
    expect((await ask(gateway, 'POST', '/model/try', wish)).body).toMatchObject({ works: true });
    expect(on.model.requests.at(-1)?.headers.authorization).toMatch(/^Basic /);
    await gateway.stop();
    expect(heard + gateway.err()).not.toContain('very-secret-login');
  });

  it('is asked with the stored key only under the stored address; comments and variables stay', async () => {
    heard = '';
    on = await stage();
    const text = `${BASE}model: # the one\n    api_key: \${MY_KEY} # in the environment\n    base_url: ${on.model.url}\n    name: scripted\n    mystery: 1 # unknown\n`;
    await on.home.write('config.yaml', text);
    const gateway = await on.start({ MY_KEY: KEY });
    const wish = { address: on.model.url, key: null, model: 'scripted' };
    const authorisation = () => on.model.requests.at(-1)?.headers.authorization;
    await ask(gateway, 'POST', '/model/try', wish);
    expect(authorisation()).toBe(`Bearer ${KEY}`);
    await ask(gateway, 'POST', '/model/try', {
      ...wish,
      address: on.model.url.replace('127.0.0.1', 'localhost'),
    });
    expect(authorisation()).toBeUndefined();
    expect((await ask(gateway, 'PUT', '/model', { ...wish, model: 'other' })).status).toBe(200);
    expect(await config()).toBe(text.replace('name: scripted', 'name: other'));
    await nextUp(gateway, 2);
    const elsewhere = on.model.url.replace('127.0.0.1', 'localhost');
    expect((await ask(gateway, 'PUT', '/model', { ...wish, address: elsewhere })).status).toBe(200);
    expect(await config()).not.toContain('MY_KEY');
    await nextUp(gateway, 3);
    const placeholder = await ask(gateway, 'PUT', '/model', { ...wish, key: '••••••••' });
    expect(placeholder.status).toBe(422);
    await gateway.stop();
    expect(heard + gateway.err()).not.toContain(KEY);
  });
});

describe('a channel that is set up', () => {
  it('keeps the other keys of its block, is checked there, and answers within ten seconds', async () => {
    heard = '';
    on = await stage();
    const text = `${BASE}channels:\n  telegram: # mine\n    api_root: ${on.telegram.url}\n    access: { direct: open }\n`;
    await on.home.write('config.yaml', text);
    const gateway = await on.start();
    expect(gateway.err()).toContain('this channel is not set up yet');
    expect((await ask(gateway, 'GET', '')).body.channels.telegram.state).toBe('begun');
    const token = { platform: 'telegram', token: on.telegram.token };
    const checked = await ask(gateway, 'POST', '/token/check', token);
    expect(checked.body).toMatchObject({ works: true, says: expect.stringContaining('@') });
    const wrong = await ask(gateway, 'POST', '/token/check', { ...token, token: '1:wrong' });
    expect(wrong.body).toMatchObject({ works: false, says: expect.stringContaining('401') });
    expect((await ask(gateway, 'PUT', '/token', token)).status).toBe(200);
    on.telegram.say({ text: 'hi' });
    await eventually(() => on.sentTo(ANNA.id).length > 0, 'Anna is answered', 10_000);
    expect(await config()).toBe(text.replace('open }\n', `open }\n    token: ${on.telegram.token}\n`));
    await gateway.stop();
    expect(heard + gateway.err()).not.toContain(on.telegram.token);
  });

  it('is nothing that a page may open further: other keys are refused, and wrong ones', async () => {
    const gateway = await begin(BASE);
    for (const body of [
      { platform: 'board', token: 'x' },
      { platform: 'telegram', token: 'x', mode: 'webhook' },
      [],
    ]) {
      expect((await ask(gateway, 'PUT', '/token', body)).status).toBe(400);
    }
    const spaced = await ask(gateway, 'PUT', '/token', { platform: 'telegram', token: 'a token/with?signs' });
    expect(spaced.status).toBe(422);
    expect(await config()).toBe(BASE);
    await gateway.stop();
  });
});

describe('a configuration that is taken in', () => {
  const telegram = (more = '') =>
    `${BASE}model: { base_url: "${on.model.url}", name: scripted }\naccess: { direct: open }\n${stringify({ channels: { telegram: { token: on.telegram.token, api_root: on.telegram.url } } })}${more}`;

  it('interrupts no turn that ends soon, and goes on with the others; each is answered once', async () => {
    heard = '';
    on = await stage();
    await on.home.write('config.yaml', telegram());
    const gateway = await on.start();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    on.model.reply(async (body) => {
      if (on.model.requests.length === 1) await held;
      return `echo ${on.model.requests.length} of ${body.model}`;
    });
    on.telegram.say({ text: 'soon' });
    await on.model.received(1);
    await ask(gateway, 'POST', '/again', {});
    await gateway.saw('a new configuration is taken in');
    release();
    expect(await on.replies(ANNA.id, 1)).toEqual(['echo 1 of scripted']);
    await nextUp(gateway, 2);

    on.model.reply(async () => {
      if (on.model.requests.length === 2) await new Promise(() => {});
      return `echo ${on.model.requests.length}`;
    });
    on.telegram.say({ text: 'late' });
    await on.model.received(2);
    const began = Date.now();
    await ask(gateway, 'POST', '/again', {});
    expect(await on.replies(ANNA.id, 2)).toEqual(['echo 1 of scripted', 'echo 3']);
    expect(Date.now() - began).toBeLessThan(10_000);
    await nextUp(gateway, 3);
    expect(gateway.err()).not.toMatch(/"level":"(warn|error)".*(crash|interrupted)/);
    await gateway.stop();
    expect(on.sentTo(ANNA.id)).toHaveLength(2);
  });

  it('lets every request be answered, whenever it comes', async () => {
    const gateway = await begin(BASE);
    const url = await gateway.url();
    let isOver = false;
    const statuses = new Map<number, number>();
    const asking = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const { status } = await fetch(`${url}/metrics`);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    });
    for (let n = 2; n < 5; n++) {
      await ask(gateway, 'POST', '/again', {});
      await nextUp(gateway, n);
    }
    isOver = true;
    await Promise.all(asking);
    expect([...statuses.keys()]).toEqual([200]);
    expect(await gateway.stop()).toBe(0);
  });

  it('stays away with its faults: the gateway goes on as it was, and says why', async () => {
    const gateway = await begin(BASE);
    await on.home.write('config.yaml', `${BASE}model: { name: x }\n`);
    await ask(gateway, 'POST', '/again', {});
    await gateway.saw('the new configuration was not taken in');
    const saved = await ask(gateway, 'PUT', '/token', { platform: 'telegram', token: on.telegram.token });
    expect(saved).toMatchObject({ status: 422, body: { error: expect.stringContaining('model.base_url') } });
    await on.home.write('config.yaml', 'a: [');
    expect(
      (await ask(gateway, 'PUT', '/token', { platform: 'telegram', token: on.telegram.token })).status,
    ).toBe(422);
    expect(await config()).toBe('a: [');
    expect(await gateway.stop()).toBe(0);
  });

  it('that cannot be written is said in a sentence, and nothing is lost', async () => {
    const gateway = await begin(BASE);
    const file = join(on.home.folder, 'config.yaml');
    const save = () => ask(gateway, 'PUT', '/token', { platform: 'telegram', token: on.telegram.token });
    const sayings: string[] = [];
    async function refuses(): Promise<void> {
      const { status, body } = await save();
      expect([status, Object.keys(body)]).toEqual([422, ['error']]);
      expect(body.error).toContain('config.yaml');
      sayings.push(body.error);
    }
    await rename(file, `${file}.kept`);
    await mkdir(file);
    await refuses();
    await rm(file, { recursive: true });
    await symlink('config.yaml', file);
    await refuses();
    await rm(file);
    await on.home.write('config.yaml', BASE);
    await chmod(file, 0o444);
    await refuses();
    expect(await config()).toBe(BASE);
    expect(sayings.pop()).toMatch(/ is read-only: make it writable, or set the keys there$/);
    await rm(file);
    for (const saying of sayings)
      expect(saying).toMatch(/^\S*config\.yaml cannot be (read|written): [^\n]+$/);
    // A link stays one: the file that it names is written.
    await symlink('config.yaml.kept', file);
    expect((await save()).status).toBe(200);
    expect(await readlink(file)).toBe('config.yaml.kept');
    expect(await on.home.read('config.yaml.kept')).toBe(
      `${BASE}channels:\n  telegram:\n    token: ${on.telegram.token}\n`,
    );
    expect(await gateway.stop()).toBe(0);
  });

  it('is a file for its owner alone where there was none; else who can read it is told', async () => {
    heard = '';
    on = await stage();
    await on.home.write('config.yaml', '');
    const file = join(on.home.folder, 'config.yaml');
    await chmod(file, 0o644);
    await on.home.write('config.yaml', BASE);
    const gateway = await on.start();
    const saved = await ask(gateway, 'PUT', '/token', { platform: 'telegram', token: on.telegram.token });
    expect(saved.body.warnings).toEqual([expect.stringContaining('chmod 600')]);
    expect((await stat(file)).mode & 0o777).toBe(0o644);
    await gateway.stop();
  });

  it('needs a restart for what belongs to the process', async () => {
    const gateway = await begin(BASE);
    await on.home.write('config.yaml', BASE.replace('port: 0', 'port: 1'));
    await ask(gateway, 'POST', '/again', {});
    await nextUp(gateway, 2);
    expect(gateway.err()).toContain('board changed; restart coterie to use it');
    expect((await ask(gateway, 'GET', '')).status).toBe(200);
    await gateway.stop();
  });
});
