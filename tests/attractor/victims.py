"""Pipelines to be killed. Their tools write down what they do, and some wait until they may end."""

from __future__ import annotations

TOOL = "shape=parallelogram, tool_command"
# Says that it began, waits until it may end, and says so. It ends too when its test has removed its folder.
HELD = (
    "echo {0} >>trace; touch {0}.began; while [ -e trace ] && [ ! -e {0}.go ]; do sleep 0.01; done; "
    "echo {0}.end >>trace"
)

LINE = f"""digraph line {{ start; end
    a [{TOOL}="echo a >>trace"]; b [{TOOL}="{HELD.format("b")}"]; c [{TOOL}="echo c >>trace"]
    start -> a -> b -> c -> end }}"""
BRANCHES = f"""digraph branches {{ start; end
    fan [shape=component]; join [shape=tripleoctagon]
    a [{TOOL}="echo a >>trace"]; a2 [{TOOL}="echo a2 >>trace; touch a2.done"]
    b [{TOOL}="echo b >>trace"]; b2 [{TOOL}="{HELD.format("b2")}"]
    inner [shape=component]; c [{TOOL}="echo c >>trace"]; d [{TOOL}="echo d >>trace"]
    both [shape=tripleoctagon]
    start -> fan; fan -> a -> a2 -> join; fan -> b -> b2 -> join
    fan -> inner; inner -> c -> both; inner -> d -> both; both -> join
    join -> last -> end; last [{TOOL}="echo last >>trace"] }}"""
GATE = f"""digraph gate {{ start; end
    a [{TOOL}="echo a >>trace"]; ask [shape=hexagon, label="Go on?"]; b [{TOOL}="echo b >>trace"]
    start -> a -> ask; ask -> b [label="[Y] Yes"]; ask -> end [label="[N] No"]; b -> end }}"""
BACKOFF = f"""digraph backoff {{ start; end
    a [{TOOL}="echo a >>trace; test $(wc -l <trace) -ge 3", max_retries=2]; b [{TOOL}="echo b >>trace"]
    start -> a -> b -> end }}"""
RESTART = f"""digraph anew {{ start; end; graph [max_restarts=2]
    a [{TOOL}="echo a >>trace"]
    b [{TOOL}="echo b >>trace; test $(grep -c b trace) -ge 2"]; d [shape=diamond]
    start -> a -> b -> d; d -> end [condition="outcome=success"]
    d -> a [condition="outcome=fail", loop_restart=true] }}"""
CHILD = f"""digraph child {{ start; end
    work [{TOOL}="{HELD.format("work")}"]; more [{TOOL}="echo more >>trace"]
    start -> work -> more -> end }}"""
MANAGER = f"""digraph manager {{ start; end; graph [stack.child_dotfile="child.dot"]
    boss [shape=house, manager.poll_interval=50ms]; b [{TOOL}="echo b >>trace"]
    start -> boss -> b -> end }}"""
GOAL = f"""digraph goal {{ start; end; graph [max_goal_jumps=2, max_same_failures=0]
    work [{TOOL}="echo work >>trace; exit 1", goal_gate=true, retry_target=work]
    check [shape=diamond]; late [{TOOL}="{HELD.format("late")}"]
    start -> work -> check -> late -> end }}"""
STAGES = ("a", "b", "b2", "c", "d", "e")
_TOLD = "".join(f'{name} [{TOOL}="echo $HOLDFAST_RUN_ID.{name} >>trace; sleep 0.05"]; ' for name in STAGES)
FLEET = f"""digraph fleet {{ start; end; fan [shape=component]; join [shape=tripleoctagon]; {_TOLD}
    start -> a -> fan; fan -> b -> b2 -> join; fan -> c -> join; fan -> d -> join; join -> e -> end }}"""
