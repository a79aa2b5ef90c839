/**
 * Databases that were closed, and are kept in memory all the same: from version 24.21 on, Node ends the process when V8
 * collects an object of a native add-on while no script runs (`RemoveEnvironmentCleanupHook`, `env != nullptr`). A closed
 * one takes about a kilobyte, so nothing is kept where nothing would happen.
 */
const ENDS_THE_PROCESS = Number(process.versions.node.split('.')[0]) >= 24;

const kept: object[] = [];

export function keepHandle(database: object): void {
  if (ENDS_THE_PROCESS) kept.push(database);
}
