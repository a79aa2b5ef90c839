/** `npm run migrations` reads the schema and writes what changed as the next file in `migrations/`, for each database. */
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'sqlite',
  casing: 'snake_case',
  schema: './src/store/schema.ts',
  out: './migrations/sqlite',
});
