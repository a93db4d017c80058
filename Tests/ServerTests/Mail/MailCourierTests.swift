import Glibc
import Testing
import ThicketTestSupport

@testable import ThicketServer

@Suite("Order of mail deliveries")
struct MailCourierTests {
    private func courier(_ names: String...) -> MailCourier {
        var courier = MailCourier()
        courier.found(names)
        return courier
    }

    @Test("the oldest message goes first, accepted and refused ones leave, and an empty queue has no deadline")
    func order() {
        var courier: MailCourier = courier("2000-b.eml", "1000-a.eml")
        #expect(courier.next(now: 3) == .send("1000-a.eml"))
        #expect(courier.tried("1000-a.eml", .taken, now: 3) == .remove)
        #expect(courier.next(now: 3) == .send("2000-b.eml"))
        #expect(courier.tried("2000-b.eml", .refused, now: 3) == .setAside)
        #expect(courier.next(now: 3) == .wait(until: nil))
        #expect(courier.count == 0)
    }

    @Test("an unreachable server is retried after 5 s, then after twice as long each time, up to 5 minutes")
    func server() {
        var courier: MailCourier = courier("0-a.eml", "0-b.eml")
        var now: Double = 10
        var waits: [Double] = []
        for _ in 0..<8 {
            guard case .keep(let wait) = courier.tried("0-a.eml", .unreachable, now: now) else { break }
            waits.append(wait)
            #expect(courier.next(now: now + wait - 0.1) == .wait(until: now + wait))
            now += wait
            #expect(courier.next(now: now) == .send("0-a.eml"))
        }
        #expect(waits == [5, 10, 20, 40, 80, 160, 300, 300])
        #expect(courier.tried("0-a.eml", .taken, now: now) == .remove)
        #expect(courier.tried("0-b.eml", .unreachable, now: now) == .keep(wait: 5), "it was reached in between")
    }

    @Test("a deferred message waits alone while the others are sent")
    func deferred() {
        var courier: MailCourier = courier("0-a.eml", "0-b.eml")
        #expect(courier.tried("0-a.eml", .deferred, now: 0) == .keep(wait: 60))
        #expect(courier.next(now: 0) == .send("0-b.eml"))
        #expect(courier.tried("0-b.eml", .taken, now: 0) == .remove)
        #expect(courier.next(now: 0) == .wait(until: 60))
        #expect(courier.next(now: 60) == .send("0-a.eml"))
        #expect(courier.tried("0-a.eml", .deferred, now: 60) == .keep(wait: 120))
    }

    @Test("a message that was not accepted for a day is set aside at the next try")
    func age() {
        var courier: MailCourier = courier("1000-a.eml")
        #expect(courier.tried("1000-a.eml", .unreachable, now: 86_401) == .keep(wait: 5))
        #expect(courier.tried("1000-a.eml", .unreachable, now: 86_402) == .setAside)
    }

    @Test("a clock that is set back makes no message wait")
    func clock() {
        var courier: MailCourier = courier("1000000000-a.eml")
        _ = courier.tried("1000000000-a.eml", .unreachable, now: 1_000_000)
        #expect(courier.next(now: 10) == .send("1000000000-a.eml"))
        _ = courier.tried("1000000000-a.eml", .deferred, now: 1_000_000)
        #expect(courier.next(now: 10) == .send("1000000000-a.eml"))
    }

    @Test("in random runs a message is removed only after it was accepted, and fewer than 10 of 300 remain")
    func property() {
        let seed: UInt64 = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 31
        print("mail courier: THICKET_SEED=\(seed)")
        var random = SeededRandom(seed: seed)
        var courier = MailCourier()
        var folder: Set<String> = []
        var (taken, aside): (Set<String>, Set<String>) = ([], [])
        var now: Double = 0
        for step in 0..<3_000 {
            if step < 300 { folder.insert("\(Int64(now * 1_000))-\(step).eml") }
            courier.found(Array(folder))
            switch courier.next(now: now) {
            case .wait(let until): now = max(now + 0.5, min(until ?? now + 1, now + 60))
            case .send(let name):
                #expect(folder.contains(name))
                let results: [MailCourier.Result] = [.taken, .refused, .deferred, .unreachable, .unreachable]
                let result: MailCourier.Result = results[Int(random.next() % 5)]
                switch courier.tried(name, result, now: now) {
                case .remove:
                    #expect(result == .taken)
                    taken.insert(name)
                    folder.remove(name)
                case .setAside:
                    aside.insert(name)
                    folder.remove(name)
                case .keep(let wait): #expect(wait >= 5 && wait <= 1_800)
                }
            }
        }
        #expect(taken.count + aside.count + folder.count == 300)
        #expect(taken.isDisjoint(with: aside))
        #expect(folder.count < 10)
    }
}
