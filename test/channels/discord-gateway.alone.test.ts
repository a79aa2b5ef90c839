import { setTimeout as wait } from 'node:timers/promises';
import { WebSocketShard } from '@discordjs/ws';
import { describe, expect, test } from 'vitest';
import { ANNA, CHANNEL, garden, openStage, type Stage } from './discord-stage.js';

/** Every test has a Discord of its own, so that they may wait side by side. */
async function onStage(act: (stage: Stage) => Promise<void>): Promise<void> {
  const stage = await openStage();
  garden(stage.fake);
  try {
    await act(stage);
  } finally {
    await stage.close();
  }
}

/** `expect.poll` does not know in which of several concurrent tests it is. */
async function holds(condition: () => boolean): Promise<void> {
  while (!condition()) await wait(5);
}

const say = ({ fake }: Stage, content: string) => fake.say({ from: ANNA, channelId: CHANNEL, content });

/** One message before a fault, one while it lasts, one after it: all are heard, in order. */
async function hearsAllThrough(stage: Stage, fault: () => void, mend: () => Promise<void>): Promise<void> {
  await stage.listen();
  say(stage, 'before');
  await stage.until(() => stage.texts().includes('before'));
  const { identified, resumed } = stage.fake.sessions();
  fault();
  say(stage, 'meanwhile');
  await mend();
  await stage.fake.until(() => {
    const now = stage.fake.sessions();
    return now.identified + now.resumed > identified + resumed && now.connected === 1;
  }, 'a session');
  say(stage, 'after');
  await stage.until(() => stage.texts().includes('after'));
  expect(stage.texts()).toEqual(['before', 'meanwhile', 'after']);
  await stage.until(() => stage.channel.status().connected);
}

describe.concurrent('the gateway closes the connection', () => {
  test.each([1001, 1006, 4000, 4001, 4002])('with %i: the session is resumed', (code) =>
    onStage(async (stage) => {
      const { fake } = stage;
      const fault = () => (code === 1006 ? fake.hangUp() : fake.closeAll(code));
      await hearsAllThrough(stage, fault, async () => {});
      expect(fake.sessions()).toMatchObject({ identified: 1, resumed: 1 });
    }),
  );

  test.each([1000, 4003, 4005, 4007, 4008, 4009])('with %i: a new session, and what was missed', (code) =>
    onStage(async (stage) => {
      await hearsAllThrough(
        stage,
        () => stage.fake.closeAll(code),
        () => stage.passes(5_000),
      );
      expect(stage.fake.sessions().identified).toBe(2);
    }),
  );

  test.each([
    [4004, 'refuses the token'],
    [4010, 'shard'],
    [4011, 'more servers'],
    [4012, 'version'],
    [4013, 'intents'],
    [4014, 'Message Content: tick it'],
  ])('with %i: said, and begun anew after a pause', (code, words) =>
    onStage(async (stage) => {
      await hearsAllThrough(
        stage,
        () => stage.fake.closeAll(code),
        async () => {
          await stage.clock.asleep(1_000);
          expect(stage.channel.status()).toMatchObject({
            connected: false,
            lastError: expect.stringContaining(words),
          });
          await stage.clock.advance(1_000);
          await stage.passes(4_000);
        },
      );
    }),
  );
});

describe.concurrent('the session', () => {
  test('is resumed where Discord asks for it', () =>
    onStage(async (stage) => {
      await hearsAllThrough(
        stage,
        () => stage.fake.reconnect(),
        async () => {},
      );
      expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1 });
    }));

  test('is resumed where the connection ends while Discord asks for it', () =>
    onStage(async (stage) => {
      await hearsAllThrough(
        stage,
        () => stage.fake.reconnect({ andClose: true }),
        async () => {},
      );
      expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1, connections: 2 });
    }));

  test('is resumed where it only seemed invalid', () =>
    onStage(async (stage) => {
      await hearsAllThrough(
        stage,
        () => stage.fake.invalidate(true),
        async () => {},
      );
      expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1 });
    }));

  test('is resumed when heartbeats are not acknowledged', async () => {
    const stage = await openStage();
    garden(stage.fake);
    stage.fake.settings.heartbeatMs = 300;
    await hearsAllThrough(
      stage,
      () => stage.fake.muteHeartbeats(true),
      async () => {
        await stage.fake.until(() => stage.fake.sessions().resumed > 0, 'a resume');
        stage.fake.heal();
      },
    );
    await stage.close();
  });

  test('is begun anew where it is invalid', () =>
    onStage(async (stage) => {
      await hearsAllThrough(
        stage,
        () => stage.fake.invalidate(false),
        () => stage.passes(5_000),
      );
    }));

  test('is begun less and less often where it does not last', () =>
    onStage(async (stage) => {
      await stage.listen();
      let identified = 1;
      for (const pause of [5, 5, 5, 5, 5, 5, 10, 20, 40, 80, 120, 120]) {
        stage.fake.invalidate(false);
        await stage.passes(pause * 1_000);
        identified += 1;
        await stage.fake.until(() => stage.fake.sessions().identified === identified, 'the next session');
        await holds(() => stage.channel.status().connected);
      }
    }));
});

describe.concurrent('a connection that does not last', () => {
  const lines = (stage: Stage, level: string) => stage.logged.filter((line) => line.startsWith(level));

  const connected = (stage: Stage) => holds(() => stage.channel.status().connected);

  test('is made again at once, then after growing pauses; the log has a line for its end and one for its return', () =>
    onStage(async (stage) => {
      await stage.listen();
      const resumes = (count: number) =>
        stage.fake.until(() => stage.fake.sessions().resumed === count, `resume ${count}`);
      stage.fake.closeAll(4000);
      await resumes(1);
      expect(lines(stage, 'warn')).toEqual([]);
      await connected(stage);
      let resumed = 1;
      for (const pause of [2, 4, 8]) {
        stage.fake.closeAll(4000);
        await stage.passes(pause * 1_000);
        resumed += 1;
        await resumes(resumed);
        await connected(stage);
      }
      expect(lines(stage, 'warn')).toHaveLength(3);
      await stage.clock.advance(60_000);
      stage.fake.closeAll(4000);
      await resumes(5);
      expect(lines(stage, 'warn')).toHaveLength(3);
      expect(lines(stage, 'info Discord connected again')).toHaveLength(3);
    }));

  test('of an outage, the log says that it began and that it is over', () =>
    onStage(async (stage) => {
      stage.fake.settings.sessionMemoryMs = 3_600_000;
      await stage.listen();
      await stage.fake.shut();
      for (const pause of [2, 4, 8, 16, 32, 60, 60]) await stage.passes(pause * 1_000);
      await stage.fake.open();
      await stage.passes(60_000);
      await connected(stage);
      expect(lines(stage, 'warn')).toHaveLength(1);
      expect(lines(stage, 'info Discord connected again')).toHaveLength(1);
      expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1 });
    }));

  test('that is refused before it is greeted is made again after growing pauses, with one line in the log', () =>
    onStage(async (stage) => {
      stage.fake.refuseBeforeHello(true);
      await stage.start();
      let connections = 0;
      for (const pause of [1, 2, 4, 8]) {
        await stage.clock.asleep(pause * 1_000);
        connections += 1;
        expect(stage.fake.sessions()).toMatchObject({ connections, identified: 0 });
        expect(stage.channel.status().connected).toBe(false);
        if (pause === 8) stage.fake.heal();
        await stage.clock.advance(pause * 1_000);
      }
      await stage.until(() => stage.logged.some((line) => line.includes('logged in')));
      expect(lines(stage, 'warn')).toHaveLength(1);
    }));

  test('begins no session where Discord would reset the token', () =>
    onStage(async (stage) => {
      stage.fake.settings.identifiesPerDay = 1;
      await stage.listen();
      stage.fake.invalidate(false);
      await stage.clock.asleep(1_000);
      expect(stage.channel.status().lastError).toContain('no more sessions today');
      stage.fake.settings.identifiesPerDay = 2;
      await stage.clock.advance(1_000);
      await stage.passes(4_000);
      await connected(stage);
      expect(stage.fake.sessions().identified).toBe(2);
    }));
});

describe.concurrent('a login', () => {
  test('that fails is tried again, after pauses that grow to a minute and never end', () =>
    onStage(async (stage) => {
      stage.fake.fail({ path: /gateway/ }, { status: 502 }, { times: 8 });
      await stage.start();
      for (const pause of [1, 2, 4, 8, 16, 32, 60, 60]) {
        await stage.clock.asleep(pause * 1_000);
        expect(stage.channel.status()).toMatchObject({
          connected: false,
          lastError: expect.stringContaining('502'),
        });
        await stage.clock.advance(pause * 1_000);
      }
      await stage.until(() => stage.channel.status().connected);
    }));

  test.each([
    [
      'a refused token',
      { status: 401, body: { code: 0, message: '401: Unauthorized' } },
      'channels.discord.token',
      1_000,
    ],
    // The library adds a moment.
    ['a limit', { status: 429, headers: { 'retry-after': '60' } }, 'limits the rate', 60_050],
    ['a page of a proxy', { html: 503 }, '503', 1_000],
    ['a connection that breaks', { drop: 'before' as const }, 'cannot be reached', 1_000],
  ])('%s is a state to come out of', (_name, fault, words, pauseMs) =>
    onStage(async (stage) => {
      stage.fake.fail({ path: /gateway/ }, fault);
      await stage.start();
      await stage.clock.asleep(pauseMs);
      expect(stage.channel.status()).toMatchObject({
        connected: false,
        lastError: expect.stringContaining(words),
      });
      await stage.clock.advance(pauseMs);
      await stage.until(() => stage.channel.status().connected);
    }),
  );

  test('while Discord is away returns at once, and is made up for', () =>
    onStage(async (stage) => {
      await stage.fake.shut();
      await stage.start();
      await stage.clock.asleep(1_000);
      expect(stage.channel.status()).toMatchObject({
        connected: false,
        lastError: expect.stringContaining('ECONNREFUSED'),
      });
      await stage.fake.open();
      await stage.clock.advance(1_000);
      await stage.until(() => stage.channel.status().connected);
    }));

  test('without the intent for content says which box to tick', () =>
    onStage(async (stage) => {
      stage.fake.settings.messageContentGranted = false;
      await stage.start();
      await stage.clock.asleep(1_000);
      expect(stage.channel.status().lastError).toContain('Message Content: tick it');
    }));

  test('that nobody answers is given up', () =>
    onStage(async (stage) => {
      stage.fake.fail({ path: /gateway/ }, { stall: 'before' });
      await stage.start();
      await stage.fake.until(() => stage.fake.callsTo('GET', /gateway/).length === 1);
      await stage.passes(30_000);
      await stage.clock.asleep(1_000);
      expect(stage.channel.status().lastError).toContain('gave no answer in time');
    }));

  test('that is not answered by the gateway itself is given up', () =>
    onStage(async (stage) => {
      await stage.listen();
      stage.fake.fallSilent();
      stage.fake.closeAll(4000);
      await stage.until(() => !stage.channel.status().connected);
      await stage.passes(180_000);
      await holds(() => stage.channel.status().lastError?.includes('no session within 3 minutes') === true);
    }));
});

describe.concurrent('an end', () => {
  test('while connected says goodbye, and may be said twice', () =>
    onStage(async (stage) => {
      await stage.listen();
      await stage.channel.stop();
      await stage.channel.stop();
      await stage.fake.until(() => stage.fake.sessions().connected === 0, 'the goodbye');
      expect(stage.channel.status().connected).toBe(false);
    }));

  test('while the library waits to connect again leaves nothing that would', () =>
    onStage(async (stage) => {
      await stage.listen();
      stage.fake.closeAll(4000);
      await stage.until(() => !stage.channel.status().connected);
      await stage.channel.stop();
      // Nothing tells that something does not happen: longer than the half second after which it would have connected.
      await wait(800);
      expect(stage.fake.sessions()).toMatchObject({ connected: 0, resumed: 0 });
    }));

  test('while Discord is away comes at once', () =>
    onStage(async (stage) => {
      await stage.listen();
      await stage.fake.shut();
      await stage.until(() => !stage.channel.status().connected);
      await stage.channel.stop();
      await stage.fake.open();
    }));

  test('before the begin is none', () =>
    onStage(async (stage) => {
      stage.intake.abort();
      await stage.start();
      await stage.channel.stop();
      expect(stage.fake.calls).toEqual([]);
    }));
});

function thrownByTheLibrary(): Promise<unknown> {
  // One that is not connected.
  return new WebSocketShard({} as never, 0).send({ op: 1, d: 0 }).catch((error: unknown) => error);
}

/** What nobody catches, as the process of the gateway hands it to its channels. */
async function handingUncaughtTo(stage: Stage, act: () => Promise<void>): Promise<unknown[]> {
  const kinds = ['uncaughtException', 'unhandledRejection'] as const;
  const others = kinds.map((kind) => process.rawListeners(kind));
  const seen: unknown[] = [];
  const survive = (error: unknown) => {
    seen.push(error);
    if (!stage.channel.survives(error)) throw error;
  };
  for (const kind of kinds) {
    process.removeAllListeners(kind);
    process.on(kind, survive);
  }
  try {
    await act();
  } finally {
    for (const [index, kind] of kinds.entries()) {
      process.removeAllListeners(kind);
      for (const other of others[index] ?? []) process.on(kind, other as () => void);
    }
  }
  return seen;
}

describe('what the library trips over', () => {
  test('an invalid session right after a resume: nothing is thrown, and nothing is lost', () =>
    onStage(async (stage) => {
      const seen = await handingUncaughtTo(stage, () =>
        hearsAllThrough(
          stage,
          () => {
            stage.fake.invalidateAfterResume();
            stage.fake.closeAll(4000);
          },
          async () => {
            await stage.passes(5_000);
            await stage.fake.until(() => stage.fake.sessions().identified === 2, 'a new session');
          },
        ),
      );
      expect(seen).toEqual([]);
    }));

  test('whatever it throws where nobody catches it: the connection is begun anew', () =>
    onStage(async (stage) => {
      const thrown = await thrownByTheLibrary();
      await hearsAllThrough(
        stage,
        () => expect(stage.channel.survives(thrown)).toBe(true),
        async () => {
          await stage.passes(1_000);
          await stage.passes(4_000);
        },
      );
      expect(stage.logged.join()).toContain('the library for Discord failed');
      expect(stage.fake.sessions().identified).toBe(2);
    }));

  test('an invalid session twice in a row', () =>
    onStage(async (stage) => {
      await handingUncaughtTo(stage, () =>
        hearsAllThrough(
          stage,
          () => stage.fake.invalidate(false),
          async () => {
            await stage.passes(5_000);
            await stage.fake.until(() => stage.fake.sessions().identified === 2, 'a new session');
            stage.fake.invalidate(false);
            await stage.passes(5_000);
            await stage.fake.until(() => stage.fake.sessions().identified === 3, 'another');
          },
        ),
      );
    }));

  test('an invalid session in answer to the begin of one', () =>
    onStage(async (stage) => {
      await handingUncaughtTo(stage, () =>
        hearsAllThrough(
          stage,
          () => stage.fake.invalidate(false),
          async () => {
            stage.fake.invalidateIdentifies(1);
            await stage.passes(5_000);
            await stage.passes(5_000);
          },
        ),
      );
    }));

  test('errors of others are not its own', () =>
    onStage(async (stage) => {
      expect(stage.channel.survives(new Error('elsewhere'))).toBe(false);
      expect(stage.channel.survives('discord.js')).toBe(false);
      expect(stage.channel.survives(undefined)).toBe(false);
    }));
});
