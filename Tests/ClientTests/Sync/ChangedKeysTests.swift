import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketClient

@Suite("Set of changed objects")
struct ChangedKeysTests {
    private func key(_ number: Int) throws -> EntityKey { try EntityKey("k\(number)") }

    @Test(
        "the set keeps the first distinct keys up to its bound, each once", arguments: [100, 9_999, 10_000, 20_000])
    func asSet(different: Int) throws {
        var random = SeededRandom(seed: UInt64(different))
        var (keys, model): (ChangedKeys, Set<EntityKey>) = (.init(), [])
        for _ in 0..<30_000 {
            let key = try key(Int.random(in: 0..<different, using: &random))
            for _ in 0...Int.random(in: 0...1, using: &random) {
                keys.insert(key)
                if model.count < ChangedKeys.countMax { model.insert(key) }
            }
        }
        #expect(keys.takeAll() == model)
        #expect(keys.takeAll().isEmpty)
        keys.insert(try key(1))
        #expect(keys.takeAll() == [try key(1)])
    }
}
