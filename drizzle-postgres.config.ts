import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  casing: 'snake_case',
  schema: './src/store/schema-postgres.ts',
  out: './migrations/postgres',
});
