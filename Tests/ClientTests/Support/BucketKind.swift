import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

/// Tests of buckets run twice: what an app does is the same in both kinds (`SessionTests`, `RealServerTests`,
/// `SyncMachineRandomTests`, and the simulation).
///
/// Not run on sealed buckets are the tests that write the wire by hand (`SyncMachineTests`, `SyncMachineTroubleTests`,
/// `CatchUpTests`, `WalkTests`, `StepsTests`, `TokenEndTests`, `FailingStoreTests`): their texts are those of open objects, and
/// connections, indexes and tokens are the same code for both; those of transports, stores and programs, to which objects are
/// bytes; and those of `thicket`'s commands, for which `SealedCommandTests` goes through a life of its own.
enum BucketKind: CaseIterable, Sendable {
    case open, sealed

    var keys: SealedBucketKeys? {
        get throws { self == .open ? nil : try Simulation.keys() }
    }

    /// The server's object, as the app would see it.
    func object(_ server: LoopbackServer, _ key: String) throws -> JSONObject? {
        guard let keys: SealedBucketKeys = try keys else {
            return server.with { $0.buckets["notes"]?.entities[key]?.object }
        }
        let name: String = keys.serverKey(of: key)
        guard let object: JSONObject = server.with({ $0.buckets["notes"]?.entities[name]?.object }) else { return nil }
        return try SealedObject.open(
            try SealedEntity(object), author: AuthorID(rawValue: 0), place: keys.place(serverKey: name),
            with: try keys.sealer(serverKey: name)
        ).object.log.object
    }
}

extension Session {
    func bucket(_ name: String, _ kind: BucketKind) async throws -> Bucket {
        guard let keys: SealedBucketKeys = try kind.keys else { return try await bucket(name) }
        return try await bucket(name, sealedBy: keys)
    }
}
