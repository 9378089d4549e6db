"""The five seeds as rows, and what goes with them: `SEEDS`, in the order of the page."""

from docs.seeds import (
    architecture,
    architecture_rules,
    beside,
    design_cluster,
    design_commands,
    design_data,
    design_delivery,
    design_http,
    design_management,
    design_overview,
    design_plan,
    design_rules,
    design_search,
    design_times,
    schema,
    storage_hybrid,
    task_orchestrator,
)
from docs.seeds.rows import Seed

SEEDS = (
    Seed(
        "corvo-design.md",
        (
            *design_overview.SECTIONS,
            *design_commands.SECTIONS,
            *design_http.SECTIONS,
            *design_management.SECTIONS,
            *design_search.SECTIONS,
            *design_management.MORE_SECTIONS,
            *design_data.SECTIONS,
            *design_search.MORE_SECTIONS,
            *design_data.MORE_SECTIONS,
            *design_rules.SECTIONS,
            *design_times.SECTIONS,
            *design_cluster.SECTIONS,
            *design_delivery.SECTIONS,
            *design_plan.SECTIONS,
        ),
    ),
    Seed("corvo-architecture.md", (*architecture.SECTIONS, *architecture_rules.SECTIONS)),
    Seed("corvo-schema.md", schema.SECTIONS),
    Seed("corvo-storage-hybrid.md", storage_hybrid.SECTIONS),
    Seed("task-orchestrator-schema.md", task_orchestrator.SECTIONS),
    Seed("Beside the seeds", beside.SECTIONS),
)
