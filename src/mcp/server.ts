/**
 * One configured server, for as long as the gateway runs: connected in the background, connected again when it is lost,
 * with the list of its tools as it is now. Nothing that it does or leaves undone reaches further than its own calls.
 */
import { describe } from '../core/errors.js';
import type { ToolResult } from '../core/tool.js';
import type { Connection, ConnectParts } from './connect.js';
import { AWAY, failed, failureOf } from './failure.js';
import { type OfferedTool, offerOf } from './offered.js';
import { resultOf } from './result.js';
import { wrongArguments } from './schema.js';
import { MOST_NAMES, type ServerSettings } from './settings.js';
import { oneLine } from './words.js';

export interface ToolServer {
  readonly settings: ServerSettings;
  /** As they are now; the same list as long as they are the same. */
  tools(): readonly OfferedTool[];
  /** Resolves when it was tried once to connect, with or without success. */
  tried: Promise<void>;
  call(tool: OfferedTool, given: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult>;
  stop(): Promise<void>;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Whoever stays that long is not the one that ends at once, again and again. */
const STABLE_MS = 30_000;
/** However often a server says that its tools have changed; one that goes on changing them is asked less and less. */
const LIST_AGAIN_MS = 1_000;
const LONGEST_LIST_AGAIN_MS = 600_000;
const QUICK_CHANGES = 5;
/** So long without a change, and it counts anew. */
const CALM_MS = 600_000;
/** Different remarks on its lists that go to the log in one run. */
const MOST_REMARKED = 40;
/** So long a call waits for a connection that is being made. */
const CALL_WAITS_MS = 10_000;

export function startServer(settings: ServerSettings, parts: ConnectParts): ToolServer {
  const { clock, log, redact } = parts;
  const over = new AbortController();
  let connection: Connection | null = null;
  let offered: readonly OfferedTool[] = [];
  /** What each tool was when it was first listed, and those that became others since. */
  const first = new Map<string, string>();
  const changed = new Set<string>();
  const remarked = new Set<string>();
  let wake = new AbortController();
  let waiting: (() => void)[] = [];
  let wasTried = () => {};
  const tried = new Promise<void>((resolve) => {
    wasTried = resolve;
  });
  const running = run();

  async function run(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    let said = '';
    while (!over.signal.aborted) {
      const began = clock.now();
      wake = new AbortController();
      try {
        await serve();
        said = '';
      } catch (error) {
        const why = oneLine(redact(describe(error)));
        if (!over.signal.aborted && why !== said) {
          log.warn({ mcp: settings.name, why }, 'a server of tools cannot be used; it is tried again');
        }
        said = why;
      }
      connection = null;
      wasTried();
      if (over.signal.aborted) return;
      if (clock.now() - began > STABLE_MS) pause = FIRST_PAUSE_MS;
      // At once, if a call has come meanwhile.
      await clock.sleep(pause, AbortSignal.any([wake.signal, over.signal]));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** From one connection's beginning to its end. */
  async function serve(): Promise<void> {
    const { connect } = await import('./connect.js');
    const made = await connect(settings, parts, over.signal);
    try {
      list(await made.listTools(over.signal), made.revision);
      connection = made;
      wasTried();
      for (const go of waiting) go();
      waiting = [];
      await Promise.race([made.closed, follow(made)]);
    } finally {
      connection = null;
      await made.close();
    }
  }

  /** Lists again whenever the server says so; ends with the connection. */
  async function follow(made: Connection): Promise<void> {
    const ended = new AbortController();
    const stop = () => ended.abort();
    void made.closed.then(stop);
    let changes = 0;
    let lastAt = clock.now();
    while (!ended.signal.aborted) {
      await Promise.race([made.changed(), made.closed]);
      changes = clock.now() - lastAt > CALM_MS + pauseAfter(changes) ? 0 : changes + 1;
      lastAt = clock.now();
      await clock.sleep(pauseAfter(changes), ended.signal);
      if (ended.signal.aborted) return;
      list(await made.listTools(over.signal), made.revision);
    }
  }

  function list(listed: readonly unknown[], revision: string): void {
    const { tools: found, remarks } = offerOf(settings, listed);
    const news = found.filter(({ own }) => !first.has(own)).map(({ own }) => own);
    const tooMany = new Set(news.slice(Math.max(0, MOST_NAMES - first.size)));
    const tools = found.filter(({ own }) => !tooMany.has(own));
    if (tooMany.size > 0) remarks.push(TOO_MANY_NAMES);
    for (const tool of tools) {
      const before = first.get(tool.own);
      if (before === undefined) first.set(tool.own, tool.fingerprint);
      else if (before !== tool.fingerprint && !changed.has(tool.own)) {
        changed.add(tool.own);
        log.warn(
          { mcp: settings.name, tool: tool.own },
          'a tool is described otherwise than it was when it was first listed: until the next start a person is asked before each of its calls',
        );
      }
    }
    const now = tools.map((tool) => (changed.has(tool.own) ? { ...tool, needsApproval: true } : tool));
    if (connection !== null && isSame(now, offered)) return;
    if (!isSame(now, offered)) offered = now;
    log.info({ mcp: settings.name, tools: now.length, revision }, 'a server of tools is connected');
    const further = remarks.filter((remark) => !remarked.has(remark));
    for (const remark of further.slice(0, Math.max(0, MOST_REMARKED - remarked.size))) {
      remarked.add(remark);
      log.warn({ mcp: settings.name }, `of a server of tools: ${remark}`);
    }
  }

  /** The connection, if there is one in a while. */
  async function connected(signal: AbortSignal): Promise<Connection | null> {
    if (connection !== null) return connection;
    wake.abort();
    const isThere = new Promise<void>((resolve) => waiting.push(resolve));
    const patience = new AbortController();
    const enough = AbortSignal.any([patience.signal, signal, over.signal]);
    await Promise.race([isThere, clock.sleep(Math.min(CALL_WAITS_MS, settings.timeoutMs), enough)]);
    patience.abort();
    return connection;
  }

  async function call(
    tool: OfferedTool,
    given: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const wrong = wrongArguments(tool.schema, given);
    if (wrong.length > 0) return failed(`These arguments do not fit ${tool.name}: ${wrong.join('; ')}`);
    const used = await connected(signal);
    if (signal.aborted) return failed('Stopped: nothing was done.');
    if (used === null) return failed(AWAY);
    const now = offered.find(({ own }) => own === tool.own);
    if (now === undefined) return failed('The server no longer has this tool. Nothing was done.');
    if (now.fingerprint !== tool.fingerprint) {
      return failed(
        'The server has changed this tool since it was offered to you. Nothing was done; from the next message on you have it as it is now.',
      );
    }
    try {
      const { content, failed: isError } = resultOf(
        await used.call(tool, given, signal, settings.timeoutMs),
        redact,
      );
      return { content: redact(content), failed: isError };
    } catch (error) {
      const { result, isLost } = failureOf(error, settings.timeoutMs / 1000);
      if (!signal.aborted) {
        const why = oneLine(redact(describe(error)));
        log.warn({ mcp: settings.name, tool: tool.own, why }, 'a call of a tool of a server failed');
      }
      if (isLost) {
        if (connection === used) connection = null;
        void used.close();
      }
      return { ...result, content: redact(result.content) };
    }
  }

  return {
    settings,
    tools: () => offered,
    tried,
    call,
    async stop() {
      over.abort();
      await connection?.close();
      await running;
    },
  };
}

const TOO_MANY_NAMES = `it has had ${MOST_NAMES} tools of different names since the start; further ones are left out until the next`;

function pauseAfter(changes: number): number {
  const doublings = Math.max(0, changes - QUICK_CHANGES);
  return Math.min(LIST_AGAIN_MS * 2 ** Math.min(doublings, 30), LONGEST_LIST_AGAIN_MS);
}

function isSame(some: readonly OfferedTool[], others: readonly OfferedTool[]): boolean {
  const key = (tools: readonly OfferedTool[]) =>
    tools.map(({ name, fingerprint, needsApproval }) => `${name} ${fingerprint} ${needsApproval}`).join('\n');
  return key(some) === key(others);
}
