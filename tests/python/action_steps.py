"""Runs the shell steps of a composite GitHub Action one by one, as a runner does, as far as one machine can.

    job = Job(action.yml, workspace, inputs={"checks": "resume"}, github={"event.pull_request.base.sha": "4f5e..."})
    job.run() -> [Step(name, code or None where it was not run, output)]

Expressions are those that our action uses: a context's value, ==, !=, &&, always(). Anything else is an error, not a guess.
A step that `uses` another action is noted and not run."""
import collections
import os
import re
import subprocess

import yaml

Step = collections.namedtuple("Step", "name code output")


class Job:
    def __init__(self, action, workspace, temp, inputs=(), github=(), environment=None):
        self.action = yaml.safe_load(action.read_text())
        self.workspace, self.temp = workspace, temp
        temp.mkdir(exist_ok=True)
        self.github = {"action_path": str(action.parent), **dict(github)}
        self.environment = dict(environment or os.environ)
        self.steps, self.outcomes, self.used = {}, [], []
        unknown = set(dict(inputs)) - set(self.action["inputs"])
        assert not unknown, f"the action has no input {unknown}"
        given = {name: value["default"] for name, value in self.action["inputs"].items()}
        self.inputs = {name: self.expand(value) for name, value in {**given, **dict(inputs)}.items()}

    # -- expressions

    def value(self, name):
        context, _, rest = name.partition(".")
        if context == "inputs":
            return self.inputs[rest]
        if context == "github":
            return self.github.get(rest, "")
        if name == "runner.temp":
            return str(self.temp)
        found = re.fullmatch(r"steps\.([\w-]+)\.outputs\.([\w-]+)", name)
        assert found, f"an expression that is not known here: {name}"
        return self.steps.get(found[1], {}).get(found[2], "")

    def term(self, text):
        text = text.strip()
        if text == "always()":
            return True
        for sign in ("==", "!="):
            if sign in text:
                left, right = (self.operand(side.strip()) for side in text.split(sign))
                return (left == right) == (sign == "==")
        return self.operand(text)

    def operand(self, text):
        return text[1:-1] if text.startswith("'") else self.value(text)

    def expand(self, text):
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(self.term(found[1])), text)

    def wanted(self, step):
        condition = re.sub(r"^\$\{\{(.*)\}\}$", r"\1", step.get("if", "").strip())
        failed = any(done.code for done in self.outcomes)
        if not condition:
            return not failed
        return all(self.term(part) for part in condition.split("&&")) and ("always()" in condition or not failed)

    # -- steps

    def run(self):
        for step in self.action["runs"]["steps"]:
            self.outcomes.append(self.run_step(step))
        return self.outcomes

    def run_step(self, step):
        if not self.wanted(step):
            return Step(step["name"], None, "")
        if "uses" in step:
            self.used.append((step["uses"], {name: self.expand(value) for name, value in step["with"].items()}))
            return Step(step["name"], 0, "")
        assert step["shell"] == "bash"
        files = {name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.touch()
        files["GITHUB_OUTPUT"].write_text("")
        environment = {**self.environment, **{name: self.expand(value) for name, value in step.get("env", {}).items()}}
        environment.update({name: str(path) for name, path in files.items()})
        # No expression stands in the script itself: a branch's name would be run as a command.
        assert "${{" not in step["run"], step["name"]
        folder = self.workspace / self.expand(step.get("working-directory", "."))
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)  # fmt: skip
        if "id" in step:
            lines = files["GITHUB_OUTPUT"].read_text().splitlines()
            self.steps[step["id"]] = dict(line.split("=", 1) for line in lines)
        return Step(step["name"], done.returncode, done.stdout)

    def outputs(self):
        return {name: self.expand(output["value"]) for name, output in self.action["outputs"].items()}

    def summary(self):
        return (self.temp / "github_step_summary").read_text()
