import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketSealed
import ThicketServer
import ThicketSharing
import ThicketTestServer

/// Two accounts and one login, as an app can do it today: the bucket's secrets come from signed lists and wraps,
/// sessions and server are unchanged. Authors are not checked here: sessions seal without authors (decision 0067).
@Suite("Sessions of several accounts by the keys of a signed list", .nonceWatch, .timeLimit(.minutes(15)))
struct SharedKeysTests {
    private struct Member {
        let keys: PublicKeys
        let account: SigningAccount
        let opening = X25519.PrivateKey.random()

        init(_ user: String) throws {
            let signing = Ed25519.SigningKey.random()
            keys = try PublicKeys(user: user, identity: signing.verifyingKey, encryption: opening.publicKey)
            account = try SigningAccount(keys, identity: signing)
        }
    }

    private let server: TestServer
    private let members: [String: Member]

    init() throws {
        server = try TestServer(store: MemoryStore.forTests())
        members = try ["ann": Member("ann"), "ben": Member("ben"), "cleo": Member("cleo")]
    }

    private func member(_ user: String) throws -> Member { try #require(members[user]) }

    private var verified: VerifiedKeys {
        let keys = members.mapValues(\.keys)
        return VerifiedKeys { keys[$0] }
    }

    private func listed(_ users: [String]) throws -> [ListedReader] {
        try users.map { ListedReader(try member($0).keys, .writes) }
    }

    /// A new session by the one login, with some account's keys, that has synced everything from the server.
    private func synced(_ secrets: BucketSecrets) async throws -> (Session, Bucket) {
        let (session, bucket) = try await opened(secrets)
        try await bucket.waitUntilSynced(timeout: .seconds(300))
        return (session, bucket)
    }

    private func opened(_ secrets: BucketSecrets) async throws -> (Session, Bucket) {
        let session = try await Thicket.connect(
            server: "http://127.0.0.1:\(server.port)", app: "app", token: "ann-token", store: .memory)
        return (session, try await session.bucket("plans", sealedBy: secrets.keys()))
    }

    @Test(
        "members read and write each other's objects; a removed one reads the old state and nothing under new keys"
    )
    func members() async throws {
        let bucket = try SharedBucket(owner: "ann", app: "app", bucket: "plans")
        var secrets = try BucketSecrets(of: bucket, secret: .random(32))
        let first = try ReaderList(
            bucket: bucket, version: 1, previous: .zero, commitments: secrets.commitments,
            readers: listed(["ann", "ben", "cleo"]))
        var lists: [SignedReaderList] = [try .init(first, signedBy: member("ann").account)]
        var wraps = try secrets.wraps(
            for: VerifiedReaderList(lists[0], of: bucket, by: verified), keys: verified)
        /// The secrets that an account gets from the lists and wraps it is shown.
        func keys(of user: String, known: BucketSecrets? = nil) throws -> BucketSecrets {
            var reader = SharedBucketReader(bucket: bucket)
            _ = reader.accept(lists, keys: verified)
            let own = try member(user)
            return try BucketSecrets.opened(
                wraps, for: #require(reader.newest), known: known, as: own.keys, with: own.opening)
        }
        let (ann, anns): (Session, Bucket) = try await synced(secrets)
        try await anns.set("trip", to: ["t": "by sea"])
        try await anns.waitUntilSynced(timeout: .seconds(300))
        await ann.close()

        let bens = try keys(of: "ben")
        let (ben, trips) = try await synced(bens)
        #expect(try await trips.get("trip") == ["t": "by sea"])
        try await trips.editText("trip", path: ["t"], at: 6, inserting: ", slowly")
        try await trips.waitUntilSynced(timeout: .seconds(300))
        await ben.close()

        // Ben is removed. Cleo continues with the new secret, in the old object and in a new one.
        let cleos = try keys(of: "cleo")
        secrets = try secrets.beginning(.random(32))
        let second: ReaderList = try first.next(
            readers: listed(["ann", "cleo"]), beginning: secrets.commitments.last)
        lists.append(try .init(second, signedBy: member("ann").account))
        wraps += try secrets.wraps(
            for: VerifiedReaderList(lists[1], of: bucket, by: verified), after: first, keys: verified)
        #expect(throws: SharingError.notAReader) { _ = try keys(of: "ben", known: bens) }
        let (cleo, plans) = try await synced(keys(of: "cleo", known: cleos))
        #expect(try await plans.get("trip") == ["t": "by sea, slowly"])
        try await plans.editText("trip", path: ["t"], at: 14, inserting: " and alone")
        try await plans.set("other", to: ["t": "by land"])
        try await plans.waitUntilSynced(timeout: .seconds(300))
        await cleo.close()

        // The login still lets Ben in, and he has the earlier secret.
        let (late, seen) = try await opened(bens)
        let reported = await #expect(throws: ClientError.self) {
            try await seen.waitUntilSynced(timeout: .seconds(300))
        }
        #expect(reported?.code == .refused, "what does not open is read-only")
        #expect(try await seen.get("trip") == ["t": "by sea, slowly"])
        #expect(try await seen.get("other") == nil)
        await late.close()
        let (again, all) = try await synced(keys(of: "ann"))
        #expect(try await all.get("trip") == ["t": "by sea, slowly and alone"])
        #expect(try await all.get("other") == ["t": "by land"])
        await again.close()
        server.stop()
    }
}
