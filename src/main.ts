#!/usr/bin/env node
/** Begins the process: private files, compiled code kept beside the program; then it hands over to the command line. */
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

// Whatever any command makes is for its owner alone.
process.umask(0o077);

// From Node 22.1 on. It must come before anything large is loaded. A folder that cannot be written is no error.
const { enableCompileCache } = nodeModule as { enableCompileCache?(folder: string): unknown };
enableCompileCache?.(fileURLToPath(new URL('compile-cache', import.meta.url)));

await import('./cli.js');
