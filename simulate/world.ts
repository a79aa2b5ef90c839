/**
 * The real gateway, as compiled, in a home of its own, between fake platforms and a model: what the simulator shows.
 * It can be killed and started again; what people say meanwhile waits on the platforms, as it would.
 */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FakeModel, type ModelReply, startFakeModel } from '../test/fakes/model.js';
import { startFakeSpeech } from '../test/fakes/speech.js';
import { type Home, makeHome, type Running, run } from '../test/harness/gateway.js';
import type { Platform } from '../test/harness/platform.js';
import { PLATFORMS, type PlatformName } from './platforms.js';

export interface WorldOptions {
  platforms: PlatformName[];
  /** Names of personas with a bot of their own on Telegram. */
  personaBots: string[];
  /** A folder of groups to work in; else there is one in the home, with the personas that come along. */
  groupsDir: string | null;
  /** A real model's server; else `reply` plays one. */
  server: { url: string; name: string } | null;
  reply: ModelReply;
  /** Whether an arbiter picks who answers where nobody is named. */
  natural: boolean;
}

export interface World {
  home: Home;
  platforms: Platform[];
  /** Starts the gateway and resolves when it is up and takes in. */
  start(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** Requests to the model that are being answered. */
  thinking(): number;
  /** Whether the gateway ended by itself. */
  died(): boolean;
  /** Its log, of the process that runs now. */
  log(): string;
  close(options: { keep: boolean }): Promise<void>;
}

/** From the compiled simulator: the package's root. */
const root = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Whoever is among the first so many is an owner, so that everybody may change personas in groups. */
const OWNERS = 50;

export async function makeWorld(options: WorldOptions): Promise<World> {
  const model: FakeModel | null =
    options.server === null ? await startFakeModel({ reply: options.reply }) : null;
  const speech = await startFakeSpeech();
  const platforms: Platform[] = [];
  for (const name of options.platforms) platforms.push(await PLATFORMS[name](options.personaBots));
  const owners = platforms.flatMap((platform) =>
    Array.from({ length: OWNERS }, (_, n) => platform.personId({ number: n + 1, name: `Person ${n + 1}` })),
  );
  const home = await makeHome({
    ...{ board: { port: 0 }, log: { format: 'json', level: 'info' } },
    access: { direct: 'open', groups: 'open', owners },
    ...(options.groupsDir === null ? {} : { groups_dir: options.groupsDir }),
    model: modelOf(options.server ?? { url: model?.url ?? '', name: 'the stand-in' }),
    speech: { base_url: speech.url, model: 'speaker', voice: 'alloy' },
    ...(options.natural ? { personas: { natural: true } } : {}),
    channels: Object.fromEntries(platforms.map(({ name, config }) => [name, config])),
  });
  if (options.groupsDir === null) {
    for (const part of ['AGENTS.md', 'personas']) {
      await cp(root(`groups/${part}`), join(home.folder, 'groups', part), { recursive: true });
    }
  }

  let running: Running | null = null;
  let over = false;
  const environment = Object.assign({}, ...platforms.map((platform) => platform.environment));

  return {
    home,
    platforms,
    async start() {
      const gateway = run(home, ['start'], environment, root('dist/main.js'));
      running = gateway;
      over = false;
      gateway.exited.then(() => {
        over = running === gateway;
      });
      for (const platform of platforms) platform.attend?.(() => gateway.err());
      await gateway.saw('coterie is up');
      await Promise.all(platforms.map((platform) => platform.connected()));
    },
    async kill() {
      const gateway = running;
      running = null;
      await gateway?.stop('SIGKILL');
    },
    thinking: () =>
      model?.requests.filter(({ answeredAt, abandoned }) => answeredAt === null && !abandoned).length ?? 0,
    died: () => over,
    log: () => running?.err() ?? '',
    async close({ keep }) {
      const gateway = running;
      running = null;
      await gateway?.stop(keep ? 'SIGTERM' : 'SIGKILL');
      await Promise.all(platforms.map((platform) => platform.close()));
      await model?.close();
      await speech.close();
      if (!keep) await home.remove();
    },
  };
}

/** The key stays in the environment: nothing of it is written down. */
function modelOf({ url, name }: { url: string; name: string }) {
  const key = process.env.MODEL_API_KEY === undefined ? {} : { api_key: `\${MODEL_API_KEY}` };
  return { base_url: url, name, ...key };
}
