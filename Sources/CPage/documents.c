#include "page.h"

// #embed is C23, which clang takes in every mode.
#pragma clang diagnostic ignored "-Wc23-extensions"

// Every page of the documentation; PackageTests compares them with the folder.
#define PAGE(name) {name, (const char[]){
#define END , 0}},

static const storekeeper_document documents[] = {
    PAGE("Guides/Adopting.md")
#embed "../StateServer/StateServer.docc/Guides/Adopting.md"
    END
    PAGE("Guides/ClientLoops.md")
#embed "../StateServer/StateServer.docc/Guides/ClientLoops.md"
    END
    PAGE("Guides/Clients.md")
#embed "../StateServer/StateServer.docc/Guides/Clients.md"
    END
    PAGE("Guides/ComingFromReSwift.md")
#embed "../StateServer/StateServer.docc/Guides/ComingFromReSwift.md"
    END
    PAGE("Guides/DamagedJournal.md")
#embed "../StateServer/StateServer.docc/Guides/DamagedJournal.md"
    END
    PAGE("Guides/Deploying.md")
#embed "../StateServer/StateServer.docc/Guides/Deploying.md"
    END
    PAGE("Guides/Documents.md")
#embed "../StateServer/StateServer.docc/Guides/Documents.md"
    END
    PAGE("Guides/FAQ.md")
#embed "../StateServer/StateServer.docc/Guides/FAQ.md"
    END
    PAGE("Guides/Following.md")
#embed "../StateServer/StateServer.docc/Guides/Following.md"
    END
    PAGE("Guides/Hooks.md")
#embed "../StateServer/StateServer.docc/Guides/Hooks.md"
    END
    PAGE("Guides/Models.md")
#embed "../StateServer/StateServer.docc/Guides/Models.md"
    END
    PAGE("Guides/OperatingTheJournal.md")
#embed "../StateServer/StateServer.docc/Guides/OperatingTheJournal.md"
    END
    PAGE("Guides/OwnRows.md")
#embed "../StateServer/StateServer.docc/Guides/OwnRows.md"
    END
    PAGE("Guides/Page.md")
#embed "../StateServer/StateServer.docc/Guides/Page.md"
    END
    PAGE("Guides/Querying.md")
#embed "../StateServer/StateServer.docc/Guides/Querying.md"
    END
    PAGE("Guides/Recipes.md")
#embed "../StateServer/StateServer.docc/Guides/Recipes.md"
    END
    PAGE("Guides/Releases.md")
#embed "../StateServer/StateServer.docc/Guides/Releases.md"
    END
    PAGE("Guides/ScalingOut.md")
#embed "../StateServer/StateServer.docc/Guides/ScalingOut.md"
    END
    PAGE("Guides/Security.md")
#embed "../StateServer/StateServer.docc/Guides/Security.md"
    END
    PAGE("Guides/Sizing.md")
#embed "../StateServer/StateServer.docc/Guides/Sizing.md"
    END
    PAGE("Guides/StreamClients.md")
#embed "../StateServer/StateServer.docc/Guides/StreamClients.md"
    END
    PAGE("Guides/Time.md")
#embed "../StateServer/StateServer.docc/Guides/Time.md"
    END
    PAGE("Guides/Tutorial.md")
#embed "../StateServer/StateServer.docc/Guides/Tutorial.md"
    END
    PAGE("Guides/WhatItIsFor.md")
#embed "../StateServer/StateServer.docc/Guides/WhatItIsFor.md"
    END
    PAGE("Guides/WholeDomain.md")
#embed "../StateServer/StateServer.docc/Guides/WholeDomain.md"
    END
    PAGE("Inside/Benchmarks.md")
#embed "../StateServer/StateServer.docc/Inside/Benchmarks.md"
    END
    PAGE("Inside/Decisions/Backups.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Backups.md"
    END
    PAGE("Inside/Decisions/Budgets.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Budgets.md"
    END
    PAGE("Inside/Decisions/CommitJournal.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/CommitJournal.md"
    END
    PAGE("Inside/Decisions/Deliveries.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Deliveries.md"
    END
    PAGE("Inside/Decisions/Dependencies.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Dependencies.md"
    END
    PAGE("Inside/Decisions/DerivedStores.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/DerivedStores.md"
    END
    PAGE("Inside/Decisions/Download.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Download.md"
    END
    PAGE("Inside/Decisions/EntityStreams.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/EntityStreams.md"
    END
    PAGE("Inside/Decisions/ExportingMetrics.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/ExportingMetrics.md"
    END
    PAGE("Inside/Decisions/Fence.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Fence.md"
    END
    PAGE("Inside/Decisions/Grants.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Grants.md"
    END
    PAGE("Inside/Decisions/IdempotencyKeys.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/IdempotencyKeys.md"
    END
    PAGE("Inside/Decisions/LibraryReads.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/LibraryReads.md"
    END
    PAGE("Inside/Decisions/ModelsInJavaScript.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/ModelsInJavaScript.md"
    END
    PAGE("Inside/Decisions/OneType.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/OneType.md"
    END
    PAGE("Inside/Decisions/PageClient.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/PageClient.md"
    END
    PAGE("Inside/Decisions/PersistentMap.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/PersistentMap.md"
    END
    PAGE("Inside/Decisions/PoisonActions.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/PoisonActions.md"
    END
    PAGE("Inside/Decisions/PublishedTree.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/PublishedTree.md"
    END
    PAGE("Inside/Decisions/Recordings.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Recordings.md"
    END
    PAGE("Inside/Decisions/Schedule.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Schedule.md"
    END
    PAGE("Inside/Decisions/SchemasOfDraft7.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/SchemasOfDraft7.md"
    END
    PAGE("Inside/Decisions/Segments.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Segments.md"
    END
    PAGE("Inside/Decisions/SignedTokens.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/SignedTokens.md"
    END
    PAGE("Inside/Decisions/Streams.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Streams.md"
    END
    PAGE("Inside/Decisions/TLS.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/TLS.md"
    END
    PAGE("Inside/Decisions/Turns.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/Turns.md"
    END
    PAGE("Inside/Decisions/TurnsInFlight.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/TurnsInFlight.md"
    END
    PAGE("Inside/Decisions/WatchHub.md")
#embed "../StateServer/StateServer.docc/Inside/Decisions/WatchHub.md"
    END
    PAGE("Inside/Invariants.md")
#embed "../StateServer/StateServer.docc/Inside/Invariants.md"
    END
    PAGE("Inside/Libmicrohttpd.md")
#embed "../StateServer/StateServer.docc/Inside/Libmicrohttpd.md"
    END
    PAGE("Inside/WalkThrough.md")
#embed "../StateServer/StateServer.docc/Inside/WalkThrough.md"
    END
    PAGE("Inside/Watches.md")
#embed "../StateServer/StateServer.docc/Inside/Watches.md"
    END
    PAGE("Reference/Budgets.md")
#embed "../StateServer/StateServer.docc/Reference/Budgets.md"
    END
    PAGE("Reference/Contract/Access.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Access.md"
    END
    PAGE("Reference/Contract/AwaitingCascades.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/AwaitingCascades.md"
    END
    PAGE("Reference/Contract/Changes.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Changes.md"
    END
    PAGE("Reference/Contract/Contract.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Contract.md"
    END
    PAGE("Reference/Contract/DerivedStoresOverHTTP.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/DerivedStoresOverHTTP.md"
    END
    PAGE("Reference/Contract/Dispatching.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Dispatching.md"
    END
    PAGE("Reference/Contract/DurableStreams.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/DurableStreams.md"
    END
    PAGE("Reference/Contract/Errors.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Errors.md"
    END
    PAGE("Reference/Contract/Forks.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Forks.md"
    END
    PAGE("Reference/Contract/KeyedDifferences.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/KeyedDifferences.md"
    END
    PAGE("Reference/Contract/Queries.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Queries.md"
    END
    PAGE("Reference/Contract/Reading.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Reading.md"
    END
    PAGE("Reference/Contract/Restoring.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Restoring.md"
    END
    PAGE("Reference/Contract/SafeDispatching.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/SafeDispatching.md"
    END
    PAGE("Reference/Contract/Scheduling.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Scheduling.md"
    END
    PAGE("Reference/Contract/Stopping.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Stopping.md"
    END
    PAGE("Reference/Contract/StreamsOverHTTP.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/StreamsOverHTTP.md"
    END
    PAGE("Reference/Contract/VersionsAndCursors.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/VersionsAndCursors.md"
    END
    PAGE("Reference/Contract/Views.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Views.md"
    END
    PAGE("Reference/Contract/Waiting.md")
#embed "../StateServer/StateServer.docc/Reference/Contract/Waiting.md"
    END
    PAGE("Reference/Glossary.md")
#embed "../StateServer/StateServer.docc/Reference/Glossary.md"
    END
    PAGE("Reference/Metrics.md")
#embed "../StateServer/StateServer.docc/Reference/Metrics.md"
    END
    PAGE("Reference/Settings.md")
#embed "../StateServer/StateServer.docc/Reference/Settings.md"
    END
    PAGE("StateServer.md")
#embed "../StateServer/StateServer.docc/StateServer.md"
    END
};

const storekeeper_document *storekeeper_documents(size_t *count) {
    *count = sizeof documents / sizeof *documents;
    return documents;
}
