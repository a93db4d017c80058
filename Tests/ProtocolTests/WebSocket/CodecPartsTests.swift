import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("Parts of the WebSocket codec")
struct CodecPartsTests {
    @Test("the mask is the plain XOR, at any length, place and offset")
    func mask() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        for length in Array(0...100) + [1_000, 4_099] {
            let key: [UInt8] = (0..<4).map { _ in .random(in: 0...255, using: &random) }
            let number = key.reversed().reduce(0) { $0 << 8 | UInt32($1) }
            let (start, offset): (Int, Int) = (.random(in: 0...9, using: &random), .random(in: 0...9, using: &random))
            let clear: [UInt8] = (0..<(length + start)).map { _ in .random(in: 0...255, using: &random) }
            var masked = clear
            masked.withUnsafeMutableBytes {
                WebSocketMask.apply(number, offset: offset, to: .init(rebasing: $0[start...]))
            }
            let expected = clear.enumerated().map { index, byte in
                index < start ? byte : byte ^ key[(index - start + offset) % 4]
            }
            #expect(masked == expected, "length \(length), start \(start), offset \(offset), seed \(seed)")
        }
    }

    @Test(
        "a message reserves twice what has arrived, not what its header announces, until a megabyte has arrived",
        arguments: [true, false])
    func reservation(_ isFinal: Bool) throws {
        let length = 8 << 20
        let gathering = WebSocketGathering()
        gathering.begin(.init(opcode: .binary, isFinal: isFinal, mask: 0, length: length, size: 14))
        #expect(gathering.message.capacity < 65 << 10)
        var piece = [UInt8](repeating: 7, count: 10_000)
        var growths = 0
        var left = length
        while left > 0 {
            let before = gathering.message.capacity
            let part = min(left, piece.count)
            try piece.withUnsafeMutableBytes {
                var input = UnsafeMutableRawBufferPointer(rebasing: $0[..<part])
                _ = try gathering.consumePayload(&input)
            }
            left -= part
            growths += gathering.message.capacity == before ? 0 : 1
            let isLarge = isFinal && gathering.message.count > WebSocketGathering.wholeFrom
            let most = isLarge ? length : max(64 << 10, 2 * gathering.message.count)
            // The heap rounds up.
            #expect(gathering.message.capacity <= most + WebSocketGathering.reservedMax)
        }
        #expect(growths < 20)
        if isFinal { #expect(gathering.message.capacity < length + WebSocketGathering.reservedMax) }
    }

    @Test("the validator agrees with the standard library on all short sequences of edge bytes, however cut")
    func utf8() {
        let edges: [UInt8] = [
            0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF4, 0xF5,
        ]
        for first in edges {
            for second in edges {
                for third in edges {
                    let bytes: [UInt8] = [first, second, third, 0x80]
                    for count in 3...4 {
                        let piece: [UInt8] = Array(bytes[..<count])
                        let isValid: Bool = String(validating: piece, as: UTF8.self) != nil
                        #expect(piece.withUnsafeBytes { UTF8Validator.isValid($0) } == isValid, "\(piece)")
                        var validator = UTF8Validator()
                        let isValidInPieces = piece.allSatisfy { byte in
                            withUnsafeBytes(of: byte) { validator.firstInvalid(in: $0) == nil }
                        }
                        #expect((isValidInPieces && validator.isComplete) == isValid, "\(piece)")
                    }
                }
            }
        }
    }

    @Test("a frame that one side writes is read by the other side, in both roles")
    func roundTrip() throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 100_000] {
            let payload: [UInt8] = (0..<length).map { _ in .random(in: 0x20...0x7E, using: &random) }
            for mask: UInt32? in [nil, .random(in: .min ... .max, using: &random)] {
                var bytes = WebSocketWriter.frame(.text, payload, mask: mask)
                #expect(bytes.count == length + WebSocketWriter.headerSize(length, isMasked: mask != nil))
                var reader = WebSocketReader(role: mask == nil ? .client : .server, messageBytesMax: 1 << 20)
                var read: [UInt8]?
                try bytes.withUnsafeMutableBytes { buffer in
                    var input = buffer
                    if case .text(let text)? = try reader.next(&input) { read = Array(text) }
                    #expect(input.isEmpty)
                }
                #expect(read == payload, "seed \(seed)")
            }
        }
    }

    @Test("a client refuses masked frames, a server unmasked ones")
    func roles() {
        for (role, mask, problem): (WebSocketRole, UInt32?, WebSocketFailure.Problem) in [
            (.client, 1, .unexpectedMask), (.server, nil, .missingMask),
        ] {
            var bytes = WebSocketWriter.frame(.text, [0x61], mask: mask)
            #expect(throws: WebSocketFailure(problem)) {
                var reader = WebSocketReader(role: role, messageBytesMax: 100)
                try bytes.withUnsafeMutableBytes { buffer in
                    var input = buffer
                    _ = try reader.next(&input)
                }
            }
        }
    }

    @Test("a reader that accepts no binary refuses it by its header, with 1003")
    func binaryNotAccepted() {
        var bytes = Array(WebSocketWriter.frame(.binary, [1, 2, 3], mask: 9).prefix(6))
        let failure = #expect(throws: WebSocketFailure.self) {
            var reader = WebSocketReader(role: .server, messageBytesMax: 100, acceptsBinary: false)
            try bytes.withUnsafeMutableBytes { buffer in
                var input = buffer
                _ = try reader.next(&input)
            }
        }
        #expect(failure?.code == .unsupportedData)
    }

    @Test("a close reason is cut between characters, a ping to 125 bytes")
    func cutting() {
        let close = WebSocketWriter.close(.normal, reason: String(repeating: "🌲", count: 40))
        #expect(close.count == 2 + 2 + 120)
        #expect(WebSocketWriter.close(nil) == [0x88, 0])
        #expect(WebSocketWriter.frame(.ping, [UInt8](repeating: 1, count: 200)).count == 127)
    }

    @Test("noise never traps: it waits, or fails once and is silent afterwards")
    func noise() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededRandom(seed: seed)
        for _ in 0..<3_000 {
            let codec = EchoCodec()
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                var piece: [UInt8] = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                    .random(in: 0...255, using: &random)
                }
                if Bool.random(using: &random), piece.count > 1 {
                    piece[0] &= 0x8F
                    piece[1] |= 0x80
                }
                codec.read(piece)
            }
            let closes = codec.answers.count { if case .close = $0 { true } else { false } }
            #expect(closes <= 1, "seed \(seed)")
        }
    }
}
