/** Describes the machine that made the figures. */
import { execFileSync } from 'node:child_process';
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { arch, cpus, loadavg, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { median } from './figures.js';

export function machine(node: string, folder: string): string {
  const processors = cpus();
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GB`;
  return [
    `${processors[0]?.model.trim() || 'unknown processor'}, ${processors.length} cores, ${memory} of memory`,
    `${platform()} ${release()} ${arch()}, Node ${version}`,
    `one small write to the disk of ${folder}: ${flushMs(folder).toFixed(2)} ms; load at the start: ${loadavg()[0]?.toFixed(1)}`,
  ].join('\n');
}

/** The minimum duration of a durable write here: every message of the gateway waits for one. */
function flushMs(folder: string): number {
  const file = join(folder, 'flush');
  const descriptor = openSync(file, 'w');
  const times = Array.from({ length: 50 }, () => {
    const startedAt = performance.now();
    writeSync(descriptor, Buffer.alloc(4096));
    fsyncSync(descriptor);
    return performance.now() - startedAt;
  });
  closeSync(descriptor);
  rmSync(file);
  return median(times);
}
