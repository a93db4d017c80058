import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// The bytes that an object in memory counts for, whatever it consists of.
@Suite("Memory of objects in use") struct ObjectMemoryTests {
    /// A value with members and elements of several levels.
    private func value(_ random: inout SeededRandom, depth: Int) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
        case 0: .null
        case 1: .bool(Bool.random(using: &random))
        case 2: .number(JSONNumber(Int64.random(in: 0..<9, using: &random)))
        case 3: .string(String(repeating: "x", count: Int.random(in: 0..<5, using: &random)))
        case 4: .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(&random, depth: depth - 1) })
        default: .object(object(&random, depth: depth - 1))
        }
    }

    private func object(_ random: inout SeededRandom, depth: Int) -> JSONObject {
        JSONObject(
            (0..<Int.random(in: 0..<6, using: &random)).map { number in
                ("k\(number)", value(&random, depth: depth))
            })
    }

    @Test(
        "the count of members kept from change to change equals a fresh count",
        arguments: 1...8 as ClosedRange<UInt64>)
    func followed(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let shard = try TestShard()
        let key = try EntityKey("k")
        var (largest, applied): (Int, Int) = (0, 0)
        for number: Int in 0..<120 {
            if number % 17 == 16 { _ = try shard.send("k", .remove) }
            let answer: Answer = try shard.send("k", d: .object(object(&random, depth: 3)))
            if answer.code == nil { applied += 1 }
            let state: ObjectState = try #require(shard.core.buckets[shard.bucket]?.entities[key]).state
            let recount: Int = DocumentMeasure.nodes(of: state.value)
            #expect(state.nodes == recount, "seed \(seed), change \(number)")
            #expect(state.memory == state.size + recount * DocumentMeasure.nodeBytes)
            largest = max(largest, recount)
        }
        #expect(applied > 60 && largest > 20)
    }

    @Test("an object made from its text counts for its text until it is changed, and then for its members")
    func creation() throws {
        let shard = try TestShard()
        let key = try EntityKey("k")
        let members = JSONObject((0..<1_000).map { ("m\($0)", ["o": "+", "v": 1]) })
        #expect(try shard.send("k", v: .object(members)).version == 1)
        let made: Int = shard.core.memory.entityBytes
        #expect(try shard.send("k", sv: 1, v: ["m0": ["o": "r", "v": 2]]).version == 2)
        let entity: ActiveEntity = try #require(shard.core.buckets[shard.bucket]?.entities[key])
        #expect(entity.state.nodes == 1_000)
        #expect(entity.memory >= 1_000 * DocumentMeasure.nodeBytes)
        #expect(shard.core.memory.entityBytes > 4 * made)
    }

    @Test(
        "an object of very many members, replaced often, keeps one state in memory, and late edits use the log"
    )
    func replaced() throws {
        let shard = try TestShard()
        let key = try EntityKey("k")
        for round: Int64 in 0..<6 {
            let members = JSONObject((0..<60_000).map { ("m\($0)", .number(JSONNumber(round))) })
            #expect(try shard.send("k", d: .object(members)).version == round + 1)
            let entity: ActiveEntity = try #require(shard.core.buckets[shard.bucket]?.entities[key])
            #expect(entity.memory <= entity.state.memory + 1 << 20)
        }
        #expect(try shard.send("k", sv: 3, v: ["m1": ["o": "r", "v": 77]]).version == 7)
    }
}
