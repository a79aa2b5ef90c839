/** The terminal as a channel: one direct chat, `terminal_local`, at a prompt or through a pipe. */
import { resolve } from 'node:path';
import type { Channel, ChannelLimits, Part, Receive, Recipient, SendResult } from '../../core/channel.js';
import { OVER, onAbort, orAborted } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import { reactionText } from '../../core/transcript.js';
import { findFile } from '../kit/outgoing.js';
import { createState } from '../kit/supervise.js';
import { parse } from '../markdown/parse.js';
import { columnsOf, createPipe, Prompt, type TerminalOptions } from './prompt.js';

export interface Terminal extends Channel {
  /** Lets a log write to the same terminal without garbling the input line. */
  interject(write: () => void): void;
}

const ADDRESS = 'local';

/** A terminal has no rate limit. */
const UNLIMITED = 1000;

export function createTerminal(options: TerminalOptions): Terminal {
  const { output, interactive, colours, clock, log } = options;
  const prompt = interactive ? new Prompt(options) : null;
  const dialogue = prompt ?? createPipe(options);
  const ended = new AbortController();
  const state = createState(clock);
  let reading: Promise<void> = Promise.resolve();
  let over = false;

  function finish(failure: unknown): void {
    state.down(failure === null ? null : describe(failure));
    if (over) return;
    over = true;
    if (!ended.signal.aborted) options.onEnd(failure);
  }

  // Without a listener, a closed reader (`| head`) would end the process.
  output.on('error', (error: NodeJS.ErrnoException) => finish(error.code === 'EPIPE' ? null : error));

  async function converse(receive: Receive, signal: AbortSignal): Promise<void> {
    try {
      await dialogue.read((line) => receive(batchOf(line, options)), signal);
      finish(null);
    } catch (error) {
      log.error({ err: error }, 'could not read the terminal; ending the chat');
      finish(error);
    }
  }

  async function show(name: string, part: Part, platformMessageId: string): Promise<SendResult> {
    try {
      await dialogue.show(name, part);
      return { kind: 'sent', platformMessageId };
    } catch (error) {
      return { kind: 'refused', reason: `nobody reads the terminal chat: ${describe(error)}` };
    }
  }

  const limits: ChannelLimits = {
    messagesPerSecond: UNLIMITED,
    perChatBurst: UNLIMITED,
    perChatPerSecond: { direct: UNLIMITED, group: UNLIMITED },
    // A pipe sends its next line only after the reply, so never in bursts.
    ...(interactive ? {} : { debounceMs: 0 }),
  };

  return {
    name: 'terminal',
    limits,
    compose(markdown) {
      if (markdown.trim() === '') return [];
      // Programs, and terminals without styles, get the model's Markdown unchanged.
      if (!interactive || !colours) return [{ text: markdown, marks: [] }];
      return [parse(markdown, { tableWidth: columnsOf(output) })];
    },
    async start(receive, signal) {
      onAbort(signal, () => ended.abort());
      if (signal.aborted) return;
      state.up();
      reading = converse(receive, ended.signal);
    },
    async send(to, part, { personaName }) {
      if (to.address !== ADDRESS)
        return { kind: 'refused', reason: `the terminal has no chat ${to.address}` };
      const found = part.file === undefined ? null : await findFile(part.file);
      if (found !== null && found.kind !== 'found') return found;
      return show(personaName, asText(part), options.newId());
    },
    react: (_to, _id, emoji, { personaName }) =>
      show(personaName, { text: reactionText(emoji), marks: [] }, ''),
    async stop() {
      ended.abort();
      await dialogue.close();
      await reading;
    },
    status: state.status,
    interject: (write) => dialogue.interject(write),
    ...(prompt && {
      setTyping: async () => prompt.thinking(),
      async preview(_to: Recipient, part: Part) {
        prompt.thinking(part.text);
        return true;
      },
    }),
  };
}

function batchOf(line: string, { userName, newId, clock }: TerminalOptions): Parameters<Receive>[0] {
  return {
    channel: 'terminal',
    account: ADDRESS,
    events: [
      {
        kind: 'message',
        // As on every platform, a direct chat has the other person's name.
        chat: { address: ADDRESS, kind: 'direct', title: userName },
        threadId: null,
        platformMessageId: newId(),
        sender: { address: ADDRESS, name: userName, administrator: true },
        text: line,
        sentAt: clock.now(),
        mentionsBot: false,
        replyTo: null,
      },
    ],
  };
}

/** As plain text, with a file's path. Unsafe characters in a file's name become `?`. */
function asText({ text, marks, file }: Part): Part {
  if (file === undefined) return { text, marks };
  const where = `File ${file.name}: ${resolve(file.path)}`.replace(/\p{Cc}/gu, '?');
  const between = text === '' || text.endsWith('\n') ? '' : '\n';
  return { text: `${text}${between}${where}`, marks };
}

/** The terminal outlives the gateways that follow one another in a run: lines typed in between are for the next one. */
export function createLasting(terminal: Channel) {
  const over = new AbortController();
  let receiver: Receive | null = null;
  let arrived: () => void = () => {};
  let next: Promise<void> = awaited();
  let isReading = false;

  function awaited(): Promise<void> {
    return new Promise((resolve) => {
      arrived = resolve;
    });
  }

  const receive: Receive = async (batch) => {
    while (receiver === null) {
      await orAborted(next, over.signal);
      if (over.signal.aborted) throw new Error('the gateway stops');
    }
    return receiver(batch);
  };

  return {
    /** For one gateway, which may stop it. */
    channel: (): Channel => ({
      ...terminal,
      async start(take, signal) {
        if (signal.aborted) return;
        receiver = take;
        arrived();
        onAbort(signal, () => {
          receiver = null;
          next = awaited();
        });
        if (isReading) return;
        isReading = true;
        await terminal.start(receive, over.signal);
      },
      async stop() {},
    }),
    /** Reads no more. */
    leave: (): void => over.abort(OVER),
    stop: (): Promise<void> => terminal.stop(),
  };
}
