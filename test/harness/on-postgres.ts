/** For the project `postgres`: without an installed PostgreSQL its tests are skipped. */
import { beforeEach, inject } from 'vitest';

if (inject('postgres') === '') beforeEach(({ skip }) => skip());
