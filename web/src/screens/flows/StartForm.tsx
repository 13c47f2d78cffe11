import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { focusField } from "@/components/FormSummary";
import { useAction } from "@/components/useAction";
import { inputFields } from "@/models/schemaForm";
import { failureOf } from "@/services/client";
import { type Flow, errorsByField, startRun } from "@/services/flows";
import { word } from "@/words";
import { Breakpoints } from "./Breakpoints";
import { InputPart } from "./InputPart";
import { type Options, OptionsPart } from "./OptionsPart";
import { t } from "./text";
import { useInput } from "./useInput";
import { currentOf, versionIn } from "./versions";

const OPTION_FIELDS = ["version", "lane", "priority", "key"];

type StartProps = { flow: Flow; schema: Record<string, unknown>; given: Record<string, unknown> | null };

/** `schema`: of the input of the chosen version. `given`: the input of the run that is started again. */
export function StartForm({ flow, schema, given }: StartProps) {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const client = useQueryClient();
  const version = versionIn(flow, search.version);
  const fields = useMemo(() => inputFields(schema, given), [schema, given]);
  const input = useInput(fields, given);
  const [options, setOptions] = useState<Options>({ key: "", lane: "", priority: "", breaks: [] });
  const [errors, setErrors] = useState<Record<string, string>>({});
  // Made when the form opens: sent twice, it starts one run.
  const [ownKey, setOwnKey] = useState(() => crypto.randomUUID() as string);

  const known = [...fields.map((each) => each.field), ...OPTION_FIELDS];

  const starting = useAction({
    mutationFn: (value: Record<string, unknown>) =>
      startRun({
        flow: flow.name,
        version: search.version ?? "",
        input: value,
        key: options.key.trim() || ownKey,
        lane: options.lane.trim(),
        priority: options.priority.trim() === "" ? null : Number(options.priority),
        breaks: options.breaks,
      }),
    onSuccess: (run) => {
      void client.invalidateQueries({ queryKey: ["flows"] });
      void navigate({ to: "/runs/$run", params: { run } });
    },
    onError: (error) => {
      // Unless nobody knows what became of this one, another attempt is another run.
      if (failureOf(error).kind !== "offline") setOwnKey(crypto.randomUUID());
      show(errorsByField(error, known).byField);
    },
  });

  function show(found: Record<string, string>): void {
    setErrors(found);
    const first = Object.keys(found)[0];
    requestAnimationFrame(() => focusField(first));
  }

  function submit(): void {
    if (starting.isOff) return;
    const { value, faults } = input.read();
    const found = { ...faults };
    if (!/^\s*[+-]?\d{0,7}\s*$/.test(options.priority)) found["priority"] = t("notWhole");
    if (value === null || Object.keys(found).length > 0) {
      starting.reset();
      return show(found);
    }
    setErrors({});
    starting.mutate(value);
  }

  function choose(id: string): void {
    input.writeDown();
    const other = id === currentOf(flow)?.id ? undefined : id;
    void navigate({ to: ".", search: (old: object) => ({ ...old, version: other, view: "json" as const }), replace: true, resetScroll: false });
  }

  const drop = (name: string) => setErrors((old) => Object.fromEntries(Object.entries(old).filter(([each]) => each !== name)));
  return (
    <form
      className="start"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {starting.isError ? <Refused error={starting.error} known={known} /> : null}
      <div className="start-parts">
        <InputPart input={input} fields={fields} errors={errors} onEdit={drop} />
        <div className="start-side">
          <OptionsPart
            flow={flow}
            version={version?.id ?? ""}
            options={options}
            errors={errors}
            onVersion={choose}
            onChange={(name, value) => {
              drop(name);
              setOptions({ ...options, [name]: value });
            }}
          />
          {version ? (
            <Breakpoints flow={flow.name} version={version.id} chosen={options.breaks} onChange={(breaks) => setOptions({ ...options, breaks })} />
          ) : null}
        </div>
      </div>
      <div className="start-bar">
        <button type="submit" className="button primary" disabled={starting.isOff}>
          {word("startRun")}
        </button>
        <Link to="/flows/$name" params={{ name: flow.name }} className="button quiet">
          {t("cancel")}
        </Link>
      </div>
    </form>
  );
}

/** What the server says, as far as no field shows it. */
function Refused({ error, known }: { error: unknown; known: string[] }) {
  const failure = failureOf(error);
  const { rest } = errorsByField(error, known);
  if (failure.errors.length > 0 && rest.length === 0) return null;
  return (
    <div className="conflict" role="alert">
      <p>{rest.length > 0 ? rest.join(". ") : failure.title || t("notStarted")}</p>
      {failure.hint ? <p>{failure.hint}</p> : null}
      {failure.requestId ? <p className="small">{t("requestId", { id: failure.requestId })}</p> : null}
    </div>
  );
}
