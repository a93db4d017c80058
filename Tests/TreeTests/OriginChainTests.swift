import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

@Suite("Chains of statements")
struct OriginChainTests {
    /// Statements 1 to 9 of one device, each naming the one before it.
    private func statements(_ count: Int = 9, seed: UInt64 = 1) throws -> [OriginStatement] {
        let post = try MessageCase(seed: seed)
        var (made, last) = ([OriginStatement](), Digest256.zero)
        for number in 1...count {
            let statement = try post.statement(counter: UInt64(number), previous: last)
            made.append(statement)
            last = statement.hash
        }
        return made
    }

    @Test("A16: a message that is withheld is a gap until it arrives, whatever the others do meanwhile")
    func withheld() throws {
        let all = try statements()
        var chain = OriginChain()
        for statement in all.prefix(4) { #expect(chain.receive(statement) == .new) }
        #expect(chain.receive(all[5]) == .gap(1))
        #expect(chain.missing == [5] && chain.missingCount == 1)
        for statement in all[6...] { #expect(chain.receive(statement) == .new) }
        #expect(chain.missing == [5] && chain.greatest == 9)
        #expect(chain.receive(all[4]) == .late)
        #expect(chain.missingCount == 0 && chain.greatest == 9)
        for statement in all { #expect(chain.receive(statement) == .repeated) }
    }

    @Test("A16: in any order, with repetitions, exactly what was withheld is missing")
    func anyOrder() throws {
        var random = SeededRandom(seed: 16)
        let all = try statements(30)
        for _ in 0..<200 {
            var kept = all.filter { _ in random.next() % 4 > 0 }
            if kept.isEmpty { kept = [all[29]] }
            var chain = OriginChain()
            var (seen, order) = (Set<UInt64>(), (kept + kept.prefix(5)).shuffled(using: &random))
            while let statement = order.popLast() {
                let counter = statement.fields.counter
                let greatest = chain.greatest
                let verdict = chain.receive(statement)
                switch verdict {
                case .new: #expect(counter == greatest + 1)
                case .gap(let count): #expect(count == counter - greatest - 1 && count > 0)
                case .late: #expect(counter < greatest && !seen.contains(counter))
                case .repeated: #expect(seen.contains(counter))
                case .fork: Issue.record("an honest chain has no fork")
                }
                seen.insert(counter)
                chain = try #require(OriginChain(octets: chain.octets))
            }
            let missing = (1...(seen.max() ?? 1)).filter { !seen.contains($0) }
            #expect(chain.missing == missing && chain.missingCount == UInt64(missing.count))
        }
    }

    @Test("two statements of one number, and one that names another one before it, are forks with both hashes")
    func forks() throws {
        let (mine, theirs) = (try statements(seed: 1), try statements(seed: 2))
        var chain = OriginChain()
        _ = chain.receive(mine[0])
        _ = chain.receive(mine[1])
        let same = OriginFork(counter: 2, known: mine[1].hash, other: theirs[1].hash)
        #expect(chain.receive(theirs[1]) == .fork(same))
        let next = OriginFork(counter: 2, known: mine[1].hash, other: theirs[1].hash)
        #expect(chain.receive(theirs[2]) == .fork(next) && chain.greatest == 3)
        // A missing number that arrives, and that the next one does not name.
        var gap = OriginChain()
        _ = gap.receive(mine[0])
        #expect(gap.receive(mine[2]) == .gap(1))
        #expect(gap.receive(theirs[1]) == .fork(OriginFork(counter: 1, known: mine[0].hash, other: theirs[0].hash)))
    }

    @Test("however far an author counts ahead, at most 64 numbers are kept and the others are counted")
    func bounds() throws {
        let post = try MessageCase(seed: 3)
        var chain = OriginChain()
        let far = try post.statement(counter: 1 << 52, previous: .of([1]))
        #expect(chain.receive(far) == .gap(1 << 52 - 1))
        #expect(chain.missing.count == 64 && chain.missingCount == 1 << 52 - 1)
        #expect(chain.receive(try post.statement(counter: 7, previous: .of([2]))) == .late)
        #expect(chain.missingCount == 1 << 52 - 2 && chain.octets.count < 6_000)
        for number in 0..<200 {
            _ = chain.receive(try post.statement(counter: 1 << 52 + 2 * UInt64(number) + 2, previous: .of([3])))
        }
        #expect(chain.missing.count == 64 && chain.recent.count == 64)
        #expect(OriginChain(octets: chain.octets) == chain)
        for cut in 0..<chain.octets.count { #expect(OriginChain(octets: Array(chain.octets.prefix(cut))) == nil) }
    }

    @Test("a device that reads the tree for the first time misses nothing of what was before, and everything after")
    func baseline() throws {
        let all = try statements()
        var chain = OriginChain()
        for place in [4, 1, 5] { #expect(chain.receive(all[place], isBaseline: true) != .repeated) }
        #expect(chain.missingCount == 0 && chain.greatest == 6)
        #expect(chain.receive(all[7]) == .gap(1) && chain.missing == [7])
        var live = OriginChain()
        #expect(live.receive(all[4]) == .gap(4))
    }

    @Test("an author counts each conversation for itself, and a number that was not answered is given again")
    func author() throws {
        let post = try MessageCase(seed: 4)
        let (first, second) = (
            post.conversation, try #require(ConversationID(octets: [UInt8](repeating: 7, count: 32)))
        )
        var chains = AuthorChains()
        #expect(chains.next(in: first, after: nil) == (1, .zero))
        let draft = chains
        let statement = try post.statement(counter: 1, previous: .zero)
        chains.advance(statement)
        #expect(chains.next(in: first, after: nil) == (2, statement.hash))
        #expect(chains.next(in: second, after: nil) == (1, .zero))
        #expect(draft.next(in: first, after: nil) == (1, .zero))
        let known = AuthorChains.Link(counter: 8, hash: .of([8]))
        #expect(draft.next(in: second, after: known) == (9, .of([8])))
    }
}
