import Testing
import ThicketProtocol
import ThicketScheduling

@testable import ThicketServer

@Suite("ShardCore: batches")
struct ShardBatchTests {
    private enum Work {
        case request(ShardRequest)
        case other(Int)
    }

    /// Records what the core asks of its thread.
    private struct Host: ShardHost {
        let core: ShardCore
        var waiting = Set<TenantID>()
        /// Number of commits after which the process dies.
        var generations = Int.max
        var diary = [String]()

        func request(in work: Work) -> ShardRequest? {
            if case .request(let request) = work { request } else { nil }
        }

        mutating func begins(_ request: ShardRequest) -> Bool {
            guard waiting.contains(request.tenant) else { return true }
            diary.append("left \(request.tenant)")
            return false
        }

        mutating func received(_ request: ShardRequest, at index: Int, deferred: DeferredChange?) {
            diary.append("\(index) of \(request.tenant)")
            #expect(deferred == nil)
        }

        mutating func commit(requests: Int) -> Bool {
            diary.append("commit \(requests)")
            #expect(core.commit().appliedCount == requests)
            generations -= 1
            return generations > 0
        }

        mutating func perform(_ work: Work) {
            guard case .other(let number) = work else { return }
            diary.append("other \(number)")
        }
    }

    private static func change(_ number: Int, of tenant: TenantID) throws -> Work {
        var reservation = QuotaReservation()
        reservation.tenant = tenant
        let diff = try JSONDocument(parsing: Array(#"{"n":{"o":"+","v":\#(number)}}"#.utf8))
        let submitted = SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0),
            bucket: BucketID(app: try AppID("app"), user: try UserID("u\(tenant)"), name: try BucketName("notes")),
            clientID: try ClientID("client"), library: .other, canWrite: true,
            request: ChangeRequest(key: "k\(number)", ccid: "c\(number)", operation: .modify, diff: .node(diff.root)),
            now: 1, reservation: reservation)
        return .request(.change(submitted))
    }

    private static func run(
        _ batch: [Work], waiting: Set<TenantID> = [], generations: Int = .max
    ) throws -> (diary: [String], isAlive: Bool) {
        let core = ShardCore(store: try MemoryStore().makeWriter())
        var host = Host(core: core, waiting: waiting, generations: generations)
        let isAlive = core.run(batch, for: &host)
        return (host.diary, isAlive)
    }

    @Test("requests are decided in their order and committed together at the end")
    func order() throws {
        let (diary, isAlive) = try Self.run([Self.change(1, of: 1), Self.change(2, of: 2), Self.change(3, of: 1)])
        #expect(diary == ["0 of 1", "1 of 2", "2 of 1", "commit 3"] && isAlive)
    }

    @Test("an empty batch commits nothing")
    func empty() throws { #expect(try Self.run([]).diary.isEmpty) }

    @Test("other work runs between two groups, without a commit when nothing was decided")
    func other() throws {
        let batch: [Work] = [.other(1), try Self.change(1, of: 1), .other(2), .other(3), try Self.change(2, of: 1)]
        #expect(
            try Self.run(batch).diary == [
                "other 1", "1 of 1", "commit 1", "other 2", "other 3", "4 of 1", "commit 1",
            ])
    }

    @Test("requests of a waiting tenant are not decided, and do not hold up other tenants")
    func waiting() throws {
        let batch = try [Self.change(1, of: 1), Self.change(2, of: 2), Self.change(3, of: 1)]
        #expect(try Self.run(batch, waiting: [1]).diary == ["left 1", "1 of 2", "left 1", "commit 1"])
        #expect(try Self.run(batch, waiting: [1, 2]).diary == ["left 1", "left 2", "left 1"])
    }

    @Test("after a commit that ends the process no more work is done")
    func death() throws {
        let batch: [Work] = [try Self.change(1, of: 1), .other(1), try Self.change(2, of: 1)]
        let (diary, isAlive) = try Self.run(batch, generations: 1)
        #expect(diary == ["0 of 1", "commit 1"] && !isAlive)
    }
}
