/**
 * The profile photos of personas' own bots: a persona's picture, set once per change of it. A bot has one photo for all
 * chats: the library's picture, else that of the first chat where the bot spoke for a persona with one. So nobody
 * else's chat changes it. Refusals are logged; a photo is never removed.
 */
import { InputFile } from 'grammy/web';
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Portrait } from '../../core/persona.js';
import type { Bot } from './bots.js';

/** Pause after a failure that may pass. */
const PAUSE_MS = 300_000;

/** `chat`: where the picture is from; null: the library. */
const keptPhoto = z.object({ chat: z.string().nullable(), hash: z.string() });
type KeptPhoto = z.infer<typeof keptPhoto>;

interface PhotosHost {
  /** Without a chat: of the library. */
  portrait(chat: Address | null, personaId: PersonaId): Promise<Portrait | null>;
  state: ChannelState;
  clock: Clock;
  log: Log;
}

export class Photos {
  private readonly kept = new Map<Bot, KeptPhoto | null>();
  /** Not tried again with this picture before that time. */
  private readonly failed = new Map<Bot, { hash: string; until: number }>();
  private readonly underWay = new Map<Bot, Promise<void>>();

  constructor(
    private readonly host: PhotosHost,
    private readonly signal: AbortSignal,
  ) {}

  /** At the start. A login that fails is tried again, and logged, where the bot polls. */
  async begin(bot: Bot): Promise<void> {
    const isIn = await bot.logIn(this.signal).then(
      () => true,
      () => false,
    );
    if (isIn) await this.refresh(bot, null);
  }

  /** The bot came up, or spoke in a chat. Resolves when its photo is as it should be, or cannot be. Never rejects. */
  refresh(bot: Bot, chat: Address | null): Promise<void> {
    const running = this.underWay.get(bot);
    if (running !== undefined) return running;
    if (bot.personaId === null || this.signal.aborted) return Promise.resolve();
    const work = this.show(bot, bot.personaId, chat)
      .catch((error: unknown) => {
        const told = { ...bot.fields, reason: describe(error) };
        this.host.log.warn(told, 'profile photo of a persona’s bot was not noted');
      })
      .finally(() => this.underWay.delete(bot));
    this.underWay.set(bot, work);
    return work;
  }

  async idle(): Promise<void> {
    await Promise.all(this.underWay.values());
  }

  private async show(bot: Bot, personaId: PersonaId, chat: Address | null): Promise<void> {
    const { clock, state } = this.host;
    const last = await this.keptOf(bot);
    const found = await this.wanted(personaId, [null, last?.chat ?? null, chat]);
    if (found === null || found.picture.hash === last?.hash) return;
    const { hash } = found.picture;
    const before = this.failed.get(bot);
    const isAgain = before?.hash === hash;
    if (isAgain && before.until > clock.now()) return;
    if (!(await this.set(bot, found.picture, isAgain))) return;
    const next = { chat: found.chat, hash };
    this.kept.set(bot, next);
    await state.set(new Map([[nameOf(bot), JSON.stringify(next)]]));
  }

  private async keptOf(bot: Bot): Promise<KeptPhoto | null> {
    const known = this.kept.get(bot);
    if (known !== undefined) return known;
    const text = (await this.host.state.get([nameOf(bot)])).get(nameOf(bot)) ?? 'null';
    const found = keptPhoto.safeParse(JSON.parse(text)).data ?? null;
    this.kept.set(bot, found);
    return found;
  }

  private async wanted(personaId: PersonaId, chats: (Address | null)[]) {
    for (const chat of new Set(chats)) {
      const picture = await this.host.portrait(chat, personaId);
      if (picture !== null) return { chat, picture };
    }
    return null;
  }

  private async set(bot: Bot, { hash, bytes }: Portrait, isAgain: boolean): Promise<boolean> {
    const { clock, log } = this.host;
    const done = await bot.api.attempt(
      (raw, ended) => {
        const photo = { type: 'static' as const, photo: new InputFile(bytes, 'portrait.jpg') };
        return raw.setMyProfilePhoto({ photo }, ended);
      },
      { signal: this.signal, bytes: bytes.length },
    );
    if ('answer' in done) {
      this.failed.delete(bot);
      log.info(bot.fields, 'profile photo of a persona’s bot was set');
      return true;
    }
    const { reason, code, retryAfterMs } = done.failure;
    // A refusal of the picture, or a server that does not know the method.
    const isFinal = code !== null && code >= 400 && code < 500 && code !== 401 && code !== 429;
    const until = isFinal ? Number.POSITIVE_INFINITY : clock.now() + Math.max(retryAfterMs ?? 0, PAUSE_MS);
    this.failed.set(bot, { hash, until });
    const level = isAgain ? 'debug' : 'warn';
    log[level](
      { ...bot.fields, reason },
      'profile photo of a persona’s bot was not set; it keeps the old one',
    );
    return false;
  }
}

function nameOf({ id }: Bot): string {
  return `photo ${id}`;
}
