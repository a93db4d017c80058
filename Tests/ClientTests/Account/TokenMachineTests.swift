import Testing
import ThicketClient
import ThicketTestSupport

@Suite("The token's state machine, by a stepped clock")
struct TokenMachineTests {
    private typealias Action = TokenMachine.Action

    private static func machine(
        lifetime: Int64? = nil, hasSource: Bool = true, now: Int64 = 0, random: UInt64 = 0
    ) -> TokenMachine {
        TokenMachine(token: "t1", lifetime: lifetime, hasSource: hasSource, now: now, random: random)
    }

    private static let second = TokenMachine.Token(text: "t2", number: 2)

    @Test("a refused call requests one new token and continues with it")
    func once() {
        var machine = Self.machine()
        #expect(machine.wanted(now: 0).0 == .call(.init(text: "t1", number: 1)))
        let (verdict, actions): (TokenMachine.Verdict, [Action]) = machine.refused(1, now: 5)
        #expect(verdict == .wait && actions == [.report(.expired), .renew(1, old: "t1")])
        for _ in 0..<3 {
            let (other, more): (TokenMachine.Verdict, [Action]) = machine.refused(1, now: 6)
            #expect(other == .wait && more.isEmpty, "a later call waits for the same renewal")
        }
        #expect(machine.wanted(now: 6).0 == .wait)
        #expect(
            machine.renewed(1, "t2", lifetime: nil, now: 7, random: 0)
                == [.adopt(Self.second), .resume(.call(Self.second)), .report(.renewed)])
        #expect(machine.refused(1, now: 8).0 == .call(Self.second), "refused with the old one: there is a newer")
    }

    @Test("a call that is refused with the new token, too, signs the user out")
    func refusedAgain() {
        var machine = Self.machine()
        _ = machine.refused(1, now: 0)
        _ = machine.renewed(1, "t2", lifetime: nil, now: 1, random: 0)
        let (verdict, actions): (TokenMachine.Verdict, [Action]) = machine.refused(2, isSecond: true, now: 2)
        #expect(verdict == .failed(Self.error(.refused)))
        #expect(
            actions == [.resume(.failed(Self.error(.refused))), .park(.refused), .report(.signedOut(.refused))])
        #expect(machine.refused(2, now: 3).1.isEmpty && machine.deadline == nil)
    }

    @Test("a fresh token refused before its first use signs out; one that was used, or is old, is renewed")
    func fresh() {
        for (isUsed, wait, isOut) in [
            (false, 10, true), (true, 10, false), (false, TokenLimits.freshMilliseconds, false),
        ] {
            var machine = Self.machine()
            _ = machine.refused(1, now: 0)
            _ = machine.renewed(1, "t2", lifetime: nil, now: 1, random: 0)
            if isUsed { machine.worked(2) }
            _ = machine.refused(2, now: 1 + wait)
            #expect((machine.signOut == .refused) == isOut, "used \(isUsed), after \(wait) ms")
        }
    }

    @Test("without a source a refused token signs out as expired")
    func noSource() {
        var machine = Self.machine(lifetime: 100_000, hasSource: false)
        #expect(machine.deadline == nil)
        #expect(machine.refused(1, now: 1).1.contains(.report(.signedOut(.expired))))
    }

    @Test(
        "the next token is requested before the end by a tenth of the lifetime, a minute at most, with jitter",
        arguments: [
            (1_800_000, 0, 1_770_000), (1_800_000, 60_000, 1_710_000), (1_800_000, 60_001, 1_770_000),
            (100_000, 0, 95_000), (100_000, 10_000, 85_000), (19_999, 0, nil), (nil, 0, nil),
            (Int64.max, 0, 86_370_000),
        ] as [(Int64?, UInt64, Int64?)])
    func ahead(lifetime: Int64?, random: UInt64, moment: Int64?) throws {
        var machine = Self.machine(lifetime: lifetime, random: random)
        #expect(machine.deadline == moment)
        guard let moment else { return }
        #expect(machine.tick(now: moment - 1).isEmpty)
        #expect(machine.tick(now: moment) == [.renew(1, old: "t1")])
        #expect(machine.wanted(now: moment).0 == .call(.init(text: "t1", number: 1)), "the old one is still good")
    }

    @Test("a failed renewal is retried after pauses that double up to a minute; calls get its error meanwhile")
    func backoff() throws {
        var machine = Self.machine()
        var now: Int64 = 0
        _ = machine.refused(1, now: now)
        let error = ClientError(.network, "no route")
        var pauses = [Int64]()
        for attempt in 1...9 {
            #expect(
                machine.renewalFailed(attempt, error, denial: nil, now: now, random: .max)
                    == [.resume(.failed(error))])
            let next = try #require(machine.deadline)
            pauses.append(next - now)
            #expect(machine.wanted(now: next - 1).0 == .failed(error))
            now = next
            #expect(machine.tick(now: now) == [.renew(attempt + 1, old: "t1")])
        }
        #expect(pauses.first ?? 0 <= TokenLimits.pauseMinMilliseconds)
        #expect(pauses == pauses.sorted() && pauses.last ?? 0 <= TokenLimits.pauseMaxMilliseconds)
        #expect(pauses.last ?? 0 >= TokenLimits.pauseMaxMilliseconds / 2)
    }

    @Test(
        "an overdue renewal fails its callers, and no second one begins beside it; its token still counts")
    func overdue() {
        var machine = Self.machine()
        _ = machine.refused(1, now: 0)
        #expect(machine.deadline == TokenLimits.renewalMaxMilliseconds)
        let reported: [Action] = machine.tick(now: TokenLimits.renewalMaxMilliseconds)
        #expect(
            reported.count == 1 && reported.first.map { if case .resume(.failed) = $0 { true } else { false } } == true)
        #expect(machine.deadline == nil)
        if case .failed(let error) = machine.refused(1, now: 40_000).0 {
            #expect(error.code == .deadline)
        } else {
            Issue.record("it should not wait any more")
        }
        #expect(machine.renewed(1, "t2", lifetime: nil, now: 50_000, random: 0).contains(.adopt(Self.second)))
    }

    @Test("a denial signs out, and so does end(), which no answer under way undoes (T18)")
    func ends() {
        var machine = Self.machine()
        _ = machine.refused(1, now: 0)
        let denied: [Action] = machine.renewalFailed(1, Self.error(.denied), denial: .denied, now: 1, random: 0)
        #expect(denied.last == .report(.signedOut(.denied)))
        machine = Self.machine()
        _ = machine.refused(1, now: 0)
        #expect(machine.end(.requested).first == .cancel(1))
        #expect(machine.renewed(1, "t2", lifetime: nil, now: 2, random: 0).isEmpty)
        #expect(machine.tick(now: .max / 2).isEmpty && machine.refused(1, now: 3).1.isEmpty)
        #expect(machine.beginReplacement(now: 3) == nil)
        #expect(machine.end(.refused).isEmpty, "reported once")
        #expect(machine.signIn("t3", lifetime: nil, now: 4, random: 0).first == .adopt(.init(text: "t3", number: 2)))
        #expect(machine.renewed(1, "t2", lifetime: nil, now: 5, random: 0).isEmpty, "of an earlier login")
        #expect(machine.refused(2, now: 6).1 == [.report(.expired), .renew(2, old: "t3")])
    }

    @Test("the source is not asked while a token is replaced, and a failed replacement leaves the old state")
    func replacement() {
        var machine = Self.machine()
        let number = machine.beginReplacement(now: 0) ?? 0
        #expect(machine.beginReplacement(now: 0) == nil)
        #expect(machine.wanted(now: 1).0 == .call(.init(text: "t1", number: 1)))
        #expect(machine.refused(1, now: 2).0 == .wait)
        #expect(machine.replacementFailed(number, now: 3) == [.renew(2, old: "t1")])
        var other = Self.machine(hasSource: false)
        let own = other.beginReplacement(now: 0) ?? 0
        _ = other.refused(1, now: 1)
        #expect(other.renewed(own, "t2", lifetime: nil, now: 2, random: 0).contains(.adopt(Self.second)))
        let again = other.beginReplacement(now: 3) ?? 0
        #expect(other.replacementFailed(again, now: 4) == [.resume(.call(Self.second))])
    }

    @Test(
        "in any order of events: one renewal at a time, none after the end, tokens in order",
        arguments: 1...40)
    func model(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var machine = Self.machine(lifetime: 60_000, random: random.next())
        var open = Set<Int>()
        var isOut = false
        var newest = 1
        var now: Int64 = 0
        func check(_ actions: [Action]) {
            for action in actions {
                switch action {
                case .renew(let number, _):
                    #expect(open.isEmpty && !isOut, "seed \(seed): a second renewal, or one after the end")
                    open.insert(number)
                case .cancel(let number): open.remove(number)
                case .adopt(let token):
                    #expect(token.number == newest + 1 && !isOut, "seed \(seed)")
                    newest = token.number
                case .park: isOut = true
                case .resume, .report: break
                }
            }
        }
        for step in 0..<400 {
            now += Int64(random.next() % 20_000)
            switch random.next() % 8 {
            case 0: check(machine.tick(now: now))
            case 1: check(machine.refused(Int(random.next() % UInt64(newest)) + 1, now: now).1)
            case 2: check(machine.refused(newest, isSecond: random.next() % 8 == 0, now: now).1)
            case 3: check(machine.wanted(now: now).1)
            case 4: machine.worked(newest)
            case 5:
                // An answer to some renewal, perhaps one that is long over.
                let number = open.first ?? Int(random.next() % 20)
                let wasOpen = open.remove(number) != nil
                let actions: [Action] =
                    random.next() % 2 == 0
                    ? machine.renewed(number, "t\(step)", lifetime: 60_000, now: now, random: random.next())
                    : machine.renewalFailed(
                        number, ClientError(.network, "x"), denial: random.next() % 8 == 0 ? .denied : nil, now: now,
                        random: random.next())
                #expect(wasOpen || actions.isEmpty, "seed \(seed): an answer to a closed renewal changes nothing")
                check(actions)
            case 6: if random.next() % 8 == 0 { check(machine.end(.requested)) }
            default:
                guard random.next() % 4 == 0 else { continue }
                isOut = false
                check(machine.signIn("s\(step)", lifetime: nil, now: now, random: random.next()))
            }
            #expect(machine.isRenewing == !open.isEmpty, "seed \(seed)")
            #expect((machine.signOut != nil) == isOut, "seed \(seed)")
        }
    }

    private static func error(_ reason: SignOutReason) -> ClientError {
        ClientError(.unauthorized, reason.text, number: 401)
    }
}
