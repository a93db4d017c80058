import Testing
import ThicketCrypto
import ThicketPlatform

@testable import ThicketAuth

@Suite("Pairing boxes")
struct PairingBoxTests {
    private let hello = [UInt8](repeating: 1, count: 40)
    private var code: String { PairingCode.text(of: hello) }

    private func failure<Value>(_ body: () throws(PairingBoxes.Failure) -> Value) -> PairingBoxes.Failure? {
        do throws(PairingBoxes.Failure) {
            _ = try body()
            return nil
        } catch { return error }
    }

    @Test("a box holds one message each way, in one app; the answer stays for a device that missed it")
    func once() throws {
        var boxes = PairingBoxes()
        try boxes.open(hello, app: "notes", now: 0)
        #expect(failure { () throws(PairingBoxes.Failure) in try boxes.open(hello, app: "notes", now: 1) } == .taken)
        #expect(try boxes.look(code, app: "notes", now: 1).answer == nil)
        #expect(try boxes.look(code, app: "notes", now: 1).hello == hello, "looking takes nothing away")
        #expect(failure { () throws(PairingBoxes.Failure) in try boxes.look(code, app: "shop", now: 1) } == .gone)
        try boxes.answer(code, app: "notes", [7], now: 2)
        #expect(
            failure { () throws(PairingBoxes.Failure) in try boxes.answer(code, app: "notes", [8], now: 2) } == .taken)
        for now: Double in [3, 3, 119] { #expect(try boxes.look(code, app: "notes", now: now).answer == [7]) }
        #expect(
            failure { () throws(PairingBoxes.Failure) in try boxes.answer(code, app: "notes", [8], now: 119) }
                == .taken,
            "one use is one answer, also after it was read")
        #expect(failure { () throws(PairingBoxes.Failure) in try boxes.look(code, app: "notes", now: 120) } == .gone)
    }

    @Test("a box lasts two minutes, also when the clock goes back, and at most 1,024 boxes exist at one time")
    func bounds() throws {
        var boxes = PairingBoxes()
        try boxes.open(hello, app: "notes", now: 1_000)
        #expect(try boxes.look(code, app: "notes", now: 1_119.9).answer == nil)
        #expect(failure { () throws(PairingBoxes.Failure) in try boxes.look(code, app: "notes", now: 1_120) } == .gone)
        // A clock that goes back removes no box either; the two minutes start again.
        try boxes.open(hello, app: "notes", now: 1_000)
        #expect(try boxes.look(code, app: "notes", now: 10).hello == hello)
        #expect(try boxes.look(code, app: "notes", now: 129.9).hello == hello)
        #expect(failure { () throws(PairingBoxes.Failure) in try boxes.look(code, app: "notes", now: 130) } == .gone)
        for number in 0..<PairingBoxes.boxesMax {
            try boxes.open([UInt8(number >> 8), UInt8(number & 255)], app: "notes", now: 0)
        }
        #expect(failure { () throws(PairingBoxes.Failure) in try boxes.open(hello, app: "notes", now: 0) } == .full)
        try boxes.open(hello, app: "notes", now: 120)
    }

    @Test("an expired box is removed by the next account request, though that is not about pairing")
    func clearing() throws {
        let bench = try AccountBench()
        try bench.post("auth/pair", #"{"hello":"\#(Base64.encodeURL(hello))"}"#)
        #expect(!bench.service.boxes.isEmpty)
        bench.seconds(PairingBoxes.lifetime - 1)
        _ = try bench.authorize("ann")
        #expect(!bench.service.boxes.isEmpty)
        bench.seconds(1)
        _ = try bench.authorize("ann")
        #expect(bench.service.boxes.isEmpty)
    }

    @Test("a code is read as a user types it, and no other text is a code")
    func reading() {
        #expect(code.utf8.count == 26)
        #expect(PairingCode.read(code.uppercased()) == code)
        #expect(PairingCode.read(" " + code.replacing("a", with: "A-") + "\n") == code)
        #expect(PairingCode.read(code.replacing("o", with: "0").replacing("l", with: "1")) == code)
        for wrong in ["", String(code.dropLast()), code + "a", String(code.dropLast()) + "!"] {
            #expect(PairingCode.read(wrong) == nil)
        }
    }
}
