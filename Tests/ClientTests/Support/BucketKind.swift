import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

/// Tests of buckets run twice: an app's calls, and a machine's messages, are the same in both kinds. This holds for
/// `SessionTests`, `RealServerTests`, `SyncMachineRandomTests` and the simulation, and for the suites that write the
/// wire by hand (`SyncMachineTests`, `SyncMachineTroubleTests`, `LinkTests`, `CatchUpTests`, `IndexScanTests`,
/// `StepsTests`, `TokenEndTests`, `FailingStoreTests`): they write that of an open bucket, and `SealedScript`
/// translates between them and the machine of a sealed one. Where the kinds differ, a test says so by kind; the few
/// that have no meaning in a sealed bucket say why above their title ("Open only").
///
/// Not run on sealed buckets are the tests of transports, stores, accounts and programs, to which objects are bytes;
/// those of how open edits are rebased (`EditsTests`), for which sealed buckets have rules of their own
/// (`SealedTests`); and those of `thicket`'s commands, for which `SealedCommandTests` has its own scenario.
enum BucketKind: CaseIterable, Sendable {
    case open, sealed

    var keys: SealedBucketKeys? {
        get throws { self == .open ? nil : try Simulation.keys() }
    }

    /// The server's object, as the app sees it.
    func object(_ server: LoopbackServer, _ key: String) throws -> JSONObject? {
        guard let keys = try keys else {
            return server.with { $0.buckets["notes"]?.entities[key]?.object }
        }
        let name = keys.serverKey(of: key)
        guard let object = server.with({ $0.buckets["notes"]?.entities[name]?.object }) else { return nil }
        return try SealedObject.open(
            try SealedEntity(object), author: AuthorID(rawValue: 0), place: keys.place(serverKey: name),
            with: try keys.sealer(serverKey: name)
        ).object.log.object
    }
}

extension Session {
    func bucket(_ name: String, _ kind: BucketKind) async throws -> Bucket {
        guard let keys = try kind.keys else { return try await bucket(name) }
        return try await bucket(name, sealedBy: keys)
    }
}
