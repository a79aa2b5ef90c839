/**
 * Which version of WhatsApp Web the gateway says it is. WhatsApp retires old ones: it then closes with 405 before
 * anything else. So that a gateway comes back without a release, the newest is looked up then, where a browser finds it.
 */
import { DEFAULT_CONNECTION_CONFIG, type WAVersion } from '@whiskeysockets/baileys';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import { withDeadline } from '../kit/abort.js';
import { download } from '../kit/download.js';
import type { Closing } from './connection.js';
import { VERSION } from './credentials.js';
import type { WhatsAppOptions } from './options.js';

const LOOK_UP_EVERY_MS = 6 * 3_600_000;
const PATIENCE_MS = 15_000;
const MAX_BYTES = 5_000_000;
/** Where WhatsApp Web is. */
const HOME = 'wss://web.whatsapp.com';
/** Without these, WhatsApp's servers answer with a page for browsers that are too old. */
const HEADERS = {
  'sec-fetch-site': 'none',
  'user-agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
};

const rememberedSchema = z.object({ version: z.string().nullable(), lookedUpAt: z.number() });
type Remembered = z.output<typeof rememberedSchema>;

export interface Versions {
  current(): Promise<WAVersion>;
  /** WhatsApp refused the current one as too old. A restart where there is another now; else what is to be done. */
  refused(): Promise<Closing>;
}

interface Parts {
  options: Pick<WhatsAppOptions, 'version' | 'webSocketUrl'>;
  state: ChannelState;
  outward: Outward;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export function createVersions({ options, state, outward, clock, log, signal }: Parts): Versions {
  let remembered: Remembered | null = null;

  async function remember(): Promise<Remembered> {
    remembered ??= readRemembered((await state.get([VERSION])).get(VERSION));
    return remembered;
  }

  async function current(): Promise<WAVersion> {
    if (options.version !== null) return numbersOf(options.version);
    const { version } = await remember();
    const lookedUp = version === null ? null : numbersOf(version);
    const own = DEFAULT_CONNECTION_CONFIG.version;
    // After an update, the library's may be the newer one.
    return lookedUp !== null && isNewer(lookedUp, own) ? lookedUp : own;
  }

  /** Throws with the reason. */
  async function lookUp(): Promise<WAVersion> {
    const address = lookUpAddress(options.webSocketUrl ?? HOME);
    const loaded = await withDeadline(clock, PATIENCE_MS, signal, (ended) =>
      download(address, {
        server: new URL(address).host,
        maxBytes: MAX_BYTES,
        signal: ended,
        headers: HEADERS,
        trusted: [new URL(address).origin],
        outward,
      }),
    );
    if (loaded.kind === 'too large') throw new Error('the page with it is too large');
    if (loaded.kind !== 'fetched') throw new Error(loaded.reason);
    const [, revision] = /\\?"client_revision\\?":\s*(\d{6,15})\b/.exec(loaded.bytes.toString()) ?? [];
    if (revision === undefined) throw new Error(`${address} does not tell it`);
    return [2, 3000, Number(revision)];
  }

  return {
    current,

    async refused() {
      const old = await current();
      const stuck = (why: string): Closing => ({
        kind: 'refused',
        reason: `WhatsApp refuses the version of its client that the gateway says it is, ${written(old)}, as too old (405); ${why}`,
      });
      if (options.version !== null) {
        return stuck('it stands in channels.whatsapp.version: leave that out, or set a newer version there');
      }
      const remedy = 'set channels.whatsapp.version to a newer version, or update the gateway';
      const { version, lookedUpAt } = await remember();
      if (clock.now() - lookedUpAt < LOOK_UP_EVERY_MS)
        return stuck(`a newer one was looked up lately: ${remedy}`);
      remembered = { version, lookedUpAt: clock.now() };
      try {
        const found = await lookUp();
        if (!isNewer(found, old)) return stuck(`a newer version is not to be found: ${remedy}`);
        remembered = { ...remembered, version: written(found) };
        const fields = { channel: 'whatsapp', refused: written(old), version: written(found) };
        log.warn(fields, 'WhatsApp refuses the version of its client as too old; it goes on with the newest');
        return { kind: 'restart', reason: `WhatsApp refused version ${written(old)} as too old (405)` };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return stuck(`the newest could not be looked up (${reason}): ${remedy}`);
      } finally {
        // Also where nothing was found: a gateway that is started again and again does not ask again and again.
        await state.set(new Map([[VERSION, JSON.stringify(remembered)]]));
      }
    },
  };
}

/** The service worker of WhatsApp Web, on the server that the gateway connects to. */
function lookUpAddress(webSocketUrl: string): string {
  const { protocol, host } = new URL(webSocketUrl);
  return `${protocol === 'ws:' ? 'http' : 'https'}://${host}/sw.js`;
}

function readRemembered(written: string | undefined): Remembered {
  const read = rememberedSchema.safeParse(written === undefined ? null : JSON.parse(written));
  return read.success ? read.data : { version: null, lookedUpAt: 0 };
}

function numbersOf(version: string): WAVersion {
  const [first = 0, second = 0, third = 0] = version.split('.').map(Number);
  return [first, second, third];
}

function written(version: WAVersion): string {
  return version.join('.');
}

function isNewer(one: WAVersion, other: WAVersion): boolean {
  const at = one.findIndex((number, place) => number !== other[place]);
  return at >= 0 && (one[at] ?? 0) > (other[at] ?? 0);
}
