import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

@Suite("RecentChanges, RecencyList and RecencyMap")
struct RecentChangesTests {
    @Test("after any eviction the returned changes are exactly the changes made", arguments: 0..<20)
    func model(_ seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        var recent = RecentChanges()
        var values: [JSONObject] = [JSONObject()]
        let countMax: Int = .random(in: 0...60, using: &random)
        let bytesMax: Int = .random(in: 0...3_000, using: &random)
        for version: Version in 1...200 {
            let before: JSONObject = values[values.count - 1]
            let action: LaterChange.Action =
                before.isEmpty || Int.random(in: 0..<10, using: &random) > 0
                ? .modify(ObjectDiff([(key: "n", operation: .replace(.number(JSONNumber(version))))])) : .remove
            let after: JSONObject = try LaterChange(action: action, before: nil).applied(to: before)
            recent.append(.value(action), before: before, beforeSize: 20, makes: version, diffSize: 10)
            values.append(after)
            if Bool.random(using: &random) {
                recent.trim(countMax: countMax, bytesMax: bytesMax)
                #expect(recent.count <= countMax)
                #expect(recent.size <= bytesMax)
                if recent.count == 0 { #expect(recent.size == 0) }
            }
            let source: Version = .random(in: 0..<version, using: &random)
            guard let later: LaterChanges = recent.changes(after: source) else {
                #expect(recent.oldestVersion.map { $0 > source + 1 } ?? true)
                continue
            }
            #expect(later.base == values[Int(source)])
            #expect(later.changes.count == Int(version - source))
            var value: JSONObject = later.base
            for change in later.changes {
                if let before: JSONObject = change.before { #expect(before == value) }
                value = try change.applied(to: value)
            }
            #expect(value == after)
        }
        #expect(recent.changes(after: 200) == nil)
    }

    @Test("a gap in the versions drops the changes before it")
    func gap() {
        var recent = RecentChanges()
        recent.append(.value(.remove), before: ["n": 1], beforeSize: 7, makes: 5, diffSize: 0)
        recent.append(.value(.modify(ObjectDiff())), before: [:], beforeSize: 2, makes: 9, diffSize: 2)
        #expect(recent.changes(after: 4) == nil)
        #expect(recent.changes(after: 8)?.changes.count == 1)
    }

    private final class Item: RecencyNode {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    @Test("the list agrees with a plain array", arguments: 0..<10)
    func list(_ seed: Int) {
        var random = SeededRandom(seed: UInt64(seed))
        let list = RecencyList<Item>()
        let items: [Item] = (0..<12).map(Item.init)
        var model: [(number: Int, bytes: Int)] = []
        for _ in 0..<500 {
            let item: Item = items[Int.random(in: 0..<12, using: &random)]
            let bytes: Int = .random(in: 0..<100, using: &random)
            model.removeAll { $0.number == item.number }
            if Int.random(in: 0..<3, using: &random) == 0 {
                list.remove(item)
            } else {
                list.touch(item, bytes: bytes)
                model.append((item.number, bytes))
            }
            #expect(list.count == model.count)
            #expect(list.bytes == model.reduce(0) { $0 + $1.bytes })
            #expect(list.oldest?.number == model.first?.number)
        }
        for item in items { list.remove(item) }
        #expect(list.bytes == 0 && list.oldest == nil)
    }

    @Test("the map evicts the least recently used entry, never the newest", arguments: 0..<10)
    func map(_ seed: Int) {
        var random = SeededRandom(seed: UInt64(100 + seed))
        let map = RecencyMap<Int, String>()
        var model: [(key: Int, weight: Int)] = []
        for _ in 0..<500 {
            let key = Int.random(in: 0..<12, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                let isKnown = model.contains { $0.key == key }
                #expect((map.remove(key) != nil) == isKnown)
                model.removeAll { $0.key == key }
            case 1:
                #expect(map[key] == (model.contains { $0.key == key } ? "\(key)" : nil))
                if let place = model.firstIndex(where: { $0.key == key }) { model.append(model.remove(at: place)) }
            default:
                let weight = Int.random(in: 0..<100, using: &random)
                map.set(key, "\(key)", weight: weight)
                model.removeAll { $0.key == key }
                model.append((key, weight))
                map.shrink(toWeight: 300, count: 8)
                while model.count > 1, model.count > 8 || model.reduce(0, { $0 + $1.weight }) > 300 {
                    model.removeFirst()
                }
            }
            #expect(map.count == model.count && map.weight == model.reduce(0) { $0 + $1.weight })
            #expect(Set(map.keys) == Set(model.map(\.key)))
        }
        #expect(map.values { $0 < 6 }.sorted() == model.map(\.key).filter { $0 < 6 }.map { "\($0)" }.sorted())
    }
}
