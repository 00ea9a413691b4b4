// Behavioural model of the two-port SRAM macro behind hw/rtl/two_port_sram.py: to be replaced by the macro of a
// technology. A read and a write a cycle, of different rows.
module kvnode_two_port_sram #(
    parameter ROWS = 1,
    parameter WIDTH = 1,
    parameter ADDRESS_BITS = 1
) (
    input                          clk,
    input                          write,
    input      [ADDRESS_BITS-1:0]  write_address,
    input      [WIDTH-1:0]         write_data,
    input                          read,
    input      [ADDRESS_BITS-1:0]  read_address,
    output reg [WIDTH-1:0]         read_data
);
    reg [WIDTH-1:0] mem [0:ROWS-1];

    always @(posedge clk) begin
        if (read)
            read_data <= mem[read_address];
        if (write)
            mem[write_address] <= write_data;
    end
endmodule
