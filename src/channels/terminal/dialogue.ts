/** What the terminal channel reads from and writes to: a pipe, or a prompt with a person at it. */
import type { Part, Reception } from '../../core/channel.js';

export interface Dialogue {
  /** Hands over every line that is not blank, until the input ends or `signal` aborts. */
  read(take: (line: string) => Promise<Reception>, signal: AbortSignal): Promise<void>;
  /** Resolves when the output has taken it, rejects when it cannot. */
  show(name: string, part: Part): Promise<void>;
  /** Shows for some seconds that a reply is being made, and what is written of it, where that is given. */
  thinking?(written?: string): void;
  /** Lets something else write to the same terminal, without tearing what is being typed. */
  interject(write: () => void): void;
  close(): Promise<void>;
}
