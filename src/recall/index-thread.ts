/** The gateway's side of the indexing thread, which starts with a call and ends when idle. The next call restarts it, also after a crash. */
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { SearchIndex } from './search-index.js';

type Calls = Omit<SearchIndex, 'tidy' | 'scrub'>;

export interface IndexCall {
  id: number;
  name: keyof Calls;
  values: unknown[];
}

export type IndexAnswer =
  | { kind: 'done'; id: number; value: unknown }
  | { kind: 'failed'; id: number; reason: string }
  | { kind: 'anew'; reason: string };

export interface WorkerSettings {
  file: string;
  zone: string;
}

/** Minimum time between starts, for a thread that crashes immediately. */
const RESTART_AFTER_MS = 5_000;

export class RemoteIndex {
  private readonly waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private worker: Worker | null = null;
  /** If false, a call has to wait for the thread's start. */
  isRunning = false;
  private startedAt = Number.NEGATIVE_INFINITY;
  /** The file's inode when an idle thread ended. */
  private left: { inode: number | undefined } | null = null;
  private ending: Promise<void> | null = null;
  private stopIdling = () => {};
  private closed = false;
  private lastId = 0;

  /** `anew` is called when the index was lost and must be rebuilt. */
  constructor(
    private readonly entry: URL,
    private readonly file: string,
    private readonly zone: Zone,
    private readonly idleMs: number,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly anew: () => void,
  ) {}

  /** Calls a method of the thread's index. */
  async ask<Name extends keyof Calls>(name: Name, ...values: Parameters<Calls[Name]>) {
    if (this.ending !== null && !this.closed) await this.ending;
    if (this.closed) throw new Fault('internal', 'recall: the index was closed');
    this.worker ??= this.start();
    return (await this.call(this.worker, name, values)) as Awaited<ReturnType<Calls[Name]>>;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.stopIdling();
    if (this.worker !== null) this.ending ??= this.end(this.worker);
    await this.ending;
  }

  private start(): Worker {
    const { clock, log, file, zone, entry } = this;
    // Absolute, so that a clock set back does not block restarts.
    if (Math.abs(clock.now() - this.startedAt) < RESTART_AFTER_MS) {
      throw new Fault('internal', 'recall: the indexing thread ended and will be restarted in a few seconds');
    }
    const died = this.startedAt !== Number.NEGATIVE_INFINITY;
    const isOther = this.left !== null && this.left.inode !== this.inode();
    this.startedAt = clock.now();
    // Latency does not matter here: a small young generation saves some 30 MB of garbage.
    const resourceLimits = { maxYoungGenerationSizeMb: 6 };
    // The zone is read now: the system's may change while the gateway runs.
    const workerData: WorkerSettings = { file, zone: zone.name };
    const started = new Worker(entry, { workerData, resourceLimits });
    this.isRunning = true;
    started.unref();
    started.on('message', (answer: IndexAnswer) => this.heard(answer, started));
    started.on('error', (error) =>
      log.error({ error: error.message, entry: entry.href }, 'the indexing thread failed'),
    );
    started.on('exit', () => {
      this.worker = null;
      this.isRunning = false;
      this.stopIdling();
      const ended = new Fault('internal', 'recall: the indexing thread ended');
      for (const { reject } of this.waiting.values()) reject(ended);
      this.waiting.clear();
    });
    if (died || isOther) this.anew();
    return started;
  }

  private heard(answer: IndexAnswer, from: Worker): void {
    const { file, waiting } = this;
    if (answer.kind === 'anew') {
      this.log.warn({ file, reason: answer.reason }, 'the search index is being rebuilt');
      this.anew();
      return;
    }
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0 && this.ending === null) this.rest(from);
    if (answer.kind === 'done') asked?.resolve(answer.value);
    else asked?.reject(new Fault('internal', `${file}: ${answer.reason}`));
  }

  private inode(): number | undefined {
    return statSync(this.file, { throwIfNoEntry: false })?.ino;
  }

  private rest(idle: Worker): void {
    idle.unref();
    this.stopIdling = this.clock.after(this.idleMs, () => {
      this.left = { inode: this.inode() };
      this.isRunning = false;
      this.ending = this.end(idle).finally(() => {
        this.ending = null;
        // It ended on purpose, so it may restart at once.
        this.startedAt = Number.NEGATIVE_INFINITY;
      });
    });
  }

  private async end(running: Worker): Promise<void> {
    const exited = new Promise((resolve) => running.once('exit', resolve));
    await this.call(running, 'close', []).catch((error: Error) =>
      this.log.warn({ error: error.message }, 'the search index could not be closed'),
    );
    await exited;
  }

  private call(running: Worker, name: keyof Calls, values: unknown[]): Promise<unknown> {
    const id = ++this.lastId;
    this.stopIdling();
    running.ref();
    running.postMessage({ id, name, values } satisfies IndexCall);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }
}
